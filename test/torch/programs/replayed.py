"""Forward and backward passes in a CUDA graph, the optimizer outside: what is replayed is a step like those before. Objects
that are packed in memory are no checkpoint."""
import io

import torch
from transformer import Decoder
from torch.nn import functional as F

model = Decoder().cuda()
optimizer = torch.optim.AdamW(model.parameters())
tokens = torch.randint(0, 1000, (2, 65), device="cuda")


def passes():
    logits = model(tokens[:, :-1])
    F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    passes()
    optimizer.step()
torch.cuda.current_stream().wait_stream(side)
optimizer.zero_grad(set_to_none=True)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    passes()
for step in range(10):
    tokens.copy_(torch.randint(0, 1000, (2, 65)))
    graph.replay()
    torch.save({"step": step}, io.BytesIO())
    optimizer.step()
