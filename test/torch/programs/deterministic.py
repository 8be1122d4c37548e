"""Deterministic algorithms fill new tensors with NaN and the greatest whole numbers, which kernels then write over."""
import os

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import torch  # noqa: E402

torch.use_deterministic_algorithms(True)
q, k, v = (torch.randn(2, 4, 64, 32, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
loss = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).float().mean()
assert 0 < loss.item() < 1, loss.item()
loss.backward()
