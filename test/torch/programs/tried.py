"""A program that tries out on the host what it is about to do on the GPU, as some libraries do when they are imported."""
import torch

small = torch.nn.Linear(4, 4)
small(torch.randn(2, 4)).sum().backward()
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model(torch.randn(32, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
