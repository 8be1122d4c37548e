"""Groups of a mesh, made from one that is bound to its device, or by the mesh itself ("unasked"): sums have as many
summands as the group has ranks. Nobody is waited for in a group of host tensors."""
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
if "unasked" not in sys.argv:
    dist.init_process_group("nccl", device_id=device)
mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("dp", "tp"))
for group, size in ((mesh.get_group("dp"), 2), (mesh.get_group("tp"), 2), (dist.group.WORLD, 4)):
    ones = torch.ones(3, device=device)
    dist.all_reduce(ones, group=group)
    assert ones.tolist() == [size] * 3, (ones, size)
dist.new_group(backend="gloo").monitored_barrier()  # as Lightning has ranks go one after the other
dist.destroy_process_group()
