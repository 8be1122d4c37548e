"""A loop that ends only by what a kernel computed."""
import torch

drawn = torch.zeros(4, dtype=torch.bool, device="cuda")
times = 0
while drawn.bernoulli_().any():
    times += 1
assert times < 10000
scale = torch.ones(4096, 1024, device="cuda")
while (scale.normal_(std=1e-4) > 1e-3).any():
    times += 1
assert times < 20000
left = torch.randint(0, 4, (8,), device="cuda")
while not (left.max() == 0).item():
    left = left - torch.randint(0, 2, (8,), device="cuda")
    times += 1
assert times < 30000
basis = torch.randn(8, 16, device="cuda")
converged = torch.zeros(8, dtype=torch.bool, device="cuda")
while not converged.all():  # as EVA's initialization waits for its components
    last, basis = basis, torch.linalg.qr(basis.T)[0].T
    converged = torch.nn.functional.cosine_similarity(basis, last) >= 0.99
    times += 1
assert times < 31000
weights = torch.nn.Parameter(torch.randn(4, device="cuda"))
weights.sum().backward()
