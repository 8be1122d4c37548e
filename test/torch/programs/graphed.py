"""A whole training step in a CUDA graph, which has a pool of memory to itself."""
import torch
from transformer import Decoder
from torch.nn import functional as F

model = Decoder().cuda()
optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
tokens = torch.randint(0, 1000, (2, 65), device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    logits = model(tokens[:, :-1]).masked_fill(tokens[:, :-1, None] == 1, 0.0)
    logits[tokens[:, 1:] == 2] = 0.0
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = step()
for _ in range(3):
    tokens.copy_(torch.randint(0, 1000, (2, 65)))
    graph.replay()
assert 0 < loss.item() < 1
print("peak", torch.cuda.max_memory_allocated())
