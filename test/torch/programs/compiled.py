"""Blocks through torch.compile."""
import torch
from transformer import Decoder, loss_of

model = Decoder().cuda()
for block in model.blocks:
    block.compile()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    loss_of(model, "cuda").backward()
    optimizer.step()
    optimizer.zero_grad()
