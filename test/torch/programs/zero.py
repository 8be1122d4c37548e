"""zero.py [--local_rank=N] STAGE: DeepSpeed's engine."""
import sys
import time

import deepspeed
import torch
from transformer import Decoder, loss_of

stage = int(sys.argv[-1])
deepspeed.init_distributed()
model = Decoder()
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
    "train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}, "gradient_clipping": 1.0,
    "zero_optimization": {"stage": stage}, "optimizer": {"type": "AdamW", "params": {"torch_adam": True}}})
for _ in range(3):
    loss = loss_of(engine, engine.device)
    engine.backward(loss)
    engine.step()
    time.sleep(0.5)  # as a GPU takes: PyTorch's watchdog lets go of gathered weights that nobody has waited for
assert engine.skipped_steps == 0
