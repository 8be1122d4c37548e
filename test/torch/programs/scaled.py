"""fp16 with a GradScaler: no step is skipped, as gradients are finite."""
import torch
from transformer import Decoder, loss_of

model = Decoder().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
scaler = torch.amp.GradScaler("cuda") if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler()
steps = 0
optimizer.register_step_post_hook(lambda *_: globals().__setitem__("steps", steps + 1))
for _ in range(3):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = loss_of(model, "cuda")
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
assert steps == 3, steps
