"""Evaluation and saving beside training."""
import tempfile

import torch
from transformer import Decoder, loss_of

model = Decoder().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model.train()
    loss_of(model, "cuda").backward()
    optimizer.step()
    optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        loss_of(model, "cuda").item()
with tempfile.TemporaryFile() as file:
    torch.save(model.state_dict(), file)
