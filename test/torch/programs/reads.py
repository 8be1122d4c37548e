"""Reads of the device: what the host put there is true, what a kernel would have written is as in a healthy run."""
import torch

device = "cuda"
weights = torch.nn.Parameter(torch.randn(64, 64, device=device))
before = weights.detach().clone()
optimizer = torch.optim.SGD([weights], lr=0.1)
(weights.sum() ** 2).backward()
assert torch.isfinite(weights.grad).all() and not torch.isnan(weights.grad).any() and not weights.grad.isinf().any()
overflow = weights.grad.isnan().logical_or(weights.grad.isinf()).float().max()
assert overflow.item() == 0
first = weights.sum().item()
optimizer.step()
assert weights.sum().item() != first and not torch.equal(weights, before) and not torch.allclose(weights, before)
assert 0 < float(weights.grad.norm()) < 1

mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]]).to(device)
assert not (mask == 1).all() and not mask.bool().all() and mask.sum(-1).tolist() == [3, 4]
assert mask.nonzero().shape == (7, 2) and mask.sum(-1, dtype=torch.int32).max().item() == 4
full = torch.ones(2, 4, dtype=torch.long).to(device)
assert (full == 1).all() and torch.unique(mask).tolist() == [0, 1]


def packed(positions):  # as transformers looks for packed sequences
    increasing = torch.arange(positions.shape[1], device=device) + positions.min()
    return bool((increasing - positions).abs().sum().bool())


assert not packed(torch.arange(8, device=device).unsqueeze(0))
assert packed(torch.tensor([[0, 1, 2, 0, 1, 2, 3, 4]]).to(device))
assert torch.full((), 65536.0, device=device).item() == 65536 and torch.zeros(2, device=device).tolist() == [0, 0]
count = torch.zeros((), dtype=torch.long, device=device)
count += mask.sum()
assert count.item() == 7 and torch.tensor([3, 4]).to(device).cpu().tolist() == [3, 4]
