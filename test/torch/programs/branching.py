"""Control flow in a CUDA graph: torch.cond and a loop become conditional nodes."""
import torch
from torch._higher_order_ops.cudagraph_conditional_nodes import (
    ControlFlowOpWarmupDispatchMode, CUDAGraphCaptureControlFlowOpDispatchMode)

weights = torch.randn(256, 256, device="cuda")
inputs = torch.randn(64, 256, device="cuda")


def halve(x):
    return x * 0.5


def multiply(x):
    return x @ weights


def step():
    out = torch.cond(inputs.sum() > 0, multiply, halve, (inputs,))
    return torch.ops.higher_order.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, multiply(x)), (torch.zeros((), dtype=torch.int64, device="cuda"), out), ())


with ControlFlowOpWarmupDispatchMode():
    step()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph), CUDAGraphCaptureControlFlowOpDispatchMode():
    _, result = step()
graph.replay()
torch.cuda.synchronize()
assert result.shape == inputs.shape
print("peak", torch.cuda.max_memory_allocated())
