"""A plain loop that reads its own counters: the last line is what PyTorch says was the peak."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
torch.cuda.reset_peak_memory_stats()
losses = []
for _ in range(3):
    optimizer.zero_grad()
    loss = model(torch.randn(32, 512).cuda()).pow(2).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    optimizer.step()
    losses.append(loss.item())
assert losses == sorted(losses, reverse=True) and losses[-1] > 0, losses
print("peak", torch.cuda.max_memory_allocated())
