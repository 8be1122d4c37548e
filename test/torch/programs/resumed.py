"""A job that saves its shards by torch.distributed.checkpoint, loads them again and goes on."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

try:
    from torch.distributed.fsdp import fully_shard
except ImportError:  # before torch 2.6
    from torch.distributed._composable.fsdp import fully_shard

rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl")
model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(3))).cuda()
for layer in model:
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())


def step():
    model(torch.randn(4, 256, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


step()
folder = [tempfile.mkdtemp()]
dist.broadcast_object_list(folder)
weights, moments = get_state_dict(model, optimizer)
state = {"weights": weights, "moments": moments, "words": {"step": 1}}
dcp.save(state, checkpoint_id=folder[0])
dist.barrier()
dcp.load(state, checkpoint_id=folder[0])
set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
step()
dist.destroy_process_group()
