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
dist.destroy_process_group()
