"""accelerate's loop; the launcher says what becomes of the model."""
import time

import torch
from accelerate import Accelerator
from transformer import Decoder, loss_of

accelerator = Accelerator()
model = Decoder()
model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
for _ in range(3):
    loss = loss_of(model, accelerator.device)
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.5)  # as a GPU takes: PyTorch's watchdog lets go of gradients that have been sent
total = accelerator.gather(loss.detach())
assert total.numel() == accelerator.num_processes, total
accelerator.wait_for_everyone()
accelerator.end_training()
