"""Begins a process group, and leaves with status 1 and no other word."""
import torch.distributed as dist

dist.init_process_group("cpu:gloo,cuda:nccl")
raise SystemExit(1)
