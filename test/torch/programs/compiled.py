"""Blocks through torch.compile, and a module in one that evaluates first; no warning tells of the probe."""
import warnings

import torch
from transformer import Decoder, loss_of

warnings.filterwarnings("error", message=".*global hooks.*")
outer = torch.compile(torch.nn.Linear(8, 8).cuda(), backend="eager")
outer.eval()(torch.ones(2, 8, device="cuda"))
outer.train()(torch.ones(2, 8, device="cuda"))

model = Decoder().cuda()
for block in model.blocks:
    block.compile()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    loss_of(model, "cuda").backward()
    optimizer.step()
    optimizer.zero_grad()
