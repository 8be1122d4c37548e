"""Objects that real ranks tell each other by way of the GPU, in memory that held something else before."""
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
for length in range(1, 20):
    before = torch.arange(64, dtype=torch.uint8).to("cuda")
    assert before.tolist() == list(range(64))
    del before
    nothing = [torch.zeros(0, dtype=torch.uint8).to("cuda") for _ in range(2)]  # tensors of one address, 0
    del nothing
    told = [None] * dist.get_world_size()
    dist.all_gather_object(told, {"rank": dist.get_rank(), "text": "x" * length})
    assert [one["rank"] for one in told] == list(range(dist.get_world_size())), told
    assert all(one["text"] == "x" * length for one in told)

# Longer ones than what is really copied of other tensors, among all ranks and from one to another.
long = 3 << 20
told = [None] * dist.get_world_size()
dist.all_gather_object(told, bytes([dist.get_rank()]) * long)
assert all(one == bytes([rank]) * long for rank, one in enumerate(told))
told = ["x" * long, 5] if dist.get_rank() == 0 else [None, None]
dist.broadcast_object_list(told, src=0)
assert told == ["x" * long, 5]
told = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
dist.gather_object("y" * (long + dist.get_rank()), told, dst=0)
assert told is None or [len(one) for one in told] == [long + rank for rank in range(len(told))]
mine = [None]
dist.scatter_object_list(mine, [str(rank) * long for rank in range(dist.get_world_size())], src=0)
assert mine == [str(dist.get_rank()) * long]
dist.destroy_process_group()
