"""Matrices that are inverted and factored, with a look at whether that went well."""
import torch

a = torch.randn(64, 64, device="cuda")
spd = a @ a.T
for name in ("inv", "cholesky", "svd", "qr", "eigh", "lu", "pinv", "det"):
    getattr(torch.linalg, name)(spd)
torch.linalg.solve(a, spd)
torch.linalg.cholesky_ex(spd, check_errors=True)

damping = 0.0
for _ in range(5):  # as GPTQ and Shampoo do
    factor, info = torch.linalg.cholesky_ex(spd + damping * torch.eye(64, device="cuda"))
    if not info.any():
        break
    damping += 0.1
assert damping == 0.0
assert torch.linalg.inv_ex(a)[1].item() == 0
assert torch.linalg.lu_factor_ex(a)[2].tolist() == 0

optimizer = torch.optim.SGD([torch.nn.Parameter(factor)], lr=0.1)
optimizer.step()
