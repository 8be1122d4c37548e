"""sharded.py ddp|fsdp1|fsdp2 [--spawn]: under a launcher, or starting its own processes."""
import os
import sys
import time

import torch
import torch.distributed as dist
from transformer import Block, Decoder, loss_of


def shard(model, how):
    if how == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    if how == "fsdp1":
        from functools import partial

        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

        policy = partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
        return FullyShardedDataParallel(model, auto_wrap_policy=policy, use_orig_params=True)
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:  # before torch 2.6
        from torch.distributed._composable.fsdp import fully_shard

    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    return model


def main(rank, world, how):
    local = int(os.environ.get("LOCAL_RANK", rank))
    torch.cuda.set_device(local)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29517")
    dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=world)
    model = shard(Decoder().cuda(), how)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        loss = loss_of(model, "cuda")
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        assert torch.isfinite(norm)
        optimizer.step()
        optimizer.zero_grad()
        dist.all_reduce(loss)
        time.sleep(0.5)  # as a GPU takes: PyTorch's watchdog lets go of gradients that have been sent
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, "here")
    assert everyone == ["here"] * dist.get_world_size(), everyone
    counts = [torch.zeros(1) for _ in everyone]
    dist.all_gather(counts, torch.ones(1))
    assert sum(int(count) for count in counts) == len(everyone)
    dist.barrier()
    time.sleep(0.5)  # torch 2.4 hangs where Gloo's threads still let go of tensors when its group is destroyed
    dist.destroy_process_group()


if __name__ == "__main__":
    if "--spawn" in sys.argv:
        torch.multiprocessing.spawn(main, args=(2, sys.argv[1]), nprocs=2)
    else:
        main(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), sys.argv[1])
