"""DDP asks all ranks how many parameters they have, in memory where other whole numbers were before."""
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
for _ in range(3):
    earlier = [torch.arange(n, device="cuda") for n in range(1, 600)]
    del earlier
model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4))).cuda()
model = torch.nn.parallel.DistributedDataParallel(model)
model(torch.randn(2, 64, device="cuda")).sum().backward()
dist.destroy_process_group()
