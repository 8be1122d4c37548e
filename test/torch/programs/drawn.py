"""Sharded weights that are drawn again until none of them lies too far out, as torch's trunc_normal_ does."""
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

os.environ["TORCH_NCCL_DUMP_ON_TIMEOUT"] = "1"  # a watchdog asks the store whether others have failed
dist.init_process_group("nccl")
mesh = init_device_mesh("cuda", (dist.get_world_size(),))
try:
    from torch.distributed.tensor import Shard, distribute_tensor
except ImportError:  # before torch 2.5
    from torch.distributed._tensor import Shard, distribute_tensor
parameters = []
for shape in ((2048, 4096), (64, 64)):
    weights = distribute_tensor(torch.randn(shape, device="cuda"), mesh, [Shard(1)])
    while (mask := (weights < -2) | (weights > 2)).full_tensor().any():
        weights = torch.where(mask, torch.empty_like(weights).normal_(), weights)
    parameters.append(weights.requires_grad_())
optimizer = torch.optim.AdamW(parameters)
sum((weights * weights).sum().full_tensor() for weights in parameters).backward()
optimizer.step()
dist.destroy_process_group()
