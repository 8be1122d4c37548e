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

# What follows from what the host put there: joined, moved, masked, looked up, sorted, written over.
positions = torch.cat([torch.arange(4), torch.arange(3)]).unsqueeze(0).to(device)
steps = torch.diff(positions, prepend=positions[:, :1] - 1, dim=-1)
assert (steps != 1).cumsum(-1).tolist() == [[0, 0, 0, 0, 1, 1, 1]]
starts = (positions.view(-1) == 0).nonzero().view(-1)
bounds = torch.cat((starts, torch.tensor([7], device=device)))
assert bounds.diff().max().item() == 4 and bounds.tolist() == [0, 4, 7]
ids = torch.tensor([[5, 6, 7, 0, 0], [8, 9, 1, 2, 0]]).to(device)
labels = ids.clone()
labels[labels == 0] = -100
labels[:, 0] = -100
assert labels.tolist() == [[-100, 6, 7, -100, -100], [-100, 9, 1, 2, -100]] and (labels != -100).sum().item() == 5
assert ids.masked_fill(ids > 6, 1).tolist() == [[5, 6, 1, 0, 0], [1, 1, 1, 2, 0]]
for mask, value, words in (((ids > 6).cpu(), 0, "same device"), (ids > 6, torch.zeros(2, device=device).long(), "0-dim")):
    try:
        ids.clone().masked_fill_(mask, value)
        raise AssertionError(f"masked_fill_ took what it refuses: {words}")
    except RuntimeError as error:
        assert words in str(error), error
assert torch.where(ids == 0, -1, ids).min().item() == -1 and (ids & 1).sum().item() == 5 - 1
assert ids.flip(1)[0].tolist() == [0, 0, 7, 6, 5] and torch.roll(ids, 1, 1)[1].tolist() == [0, 8, 9, 1, 2]
assert ids.gather(1, (ids != 0).long().cumsum(1).argmax(1, keepdim=True)).view(-1).tolist() == [7, 2]
assert ids[ids != 0].shape == (7,) and ids.max(dim=1).values.tolist() == [7, 9]
assert ids.view(-1).sort(descending=True).values[:2].tolist() == [9, 8] and ids.view(-1)[[0, 2]].tolist() == [5, 7]
assert torch.nn.functional.pad(ids, (0, 1), value=-1)[:, -1].tolist() == [-1, -1]
assert torch.nn.functional.one_hot(ids).shape == (2, 5, 10) and torch.isin(ids, ids[0, :2]).sum().item() == 2
host = torch.empty(2, 5, dtype=torch.long)
host.copy_(ids)
assert host.tolist() == ids.tolist() and host.float().to(device).copy_(ids).long().tolist() == ids.tolist()
window = torch.zeros(4, 6, dtype=torch.long, device=device)
window[1:3, :5].copy_(ids)
window[3] = window[2].clamp(max=1)
assert window.sum(1).tolist() == [0, 18, 20, 4]
quantized = torch.zeros(8, dtype=torch.uint8, device=device)
assert (quantized & 0b1111).dtype is torch.uint8 and (quantized >> 4).dtype is torch.uint8

# Masks as large as a weight matrix, and batches of more than a million tokens.
chosen = torch.randperm(2048 * 2048)[:300].to(device)
truths = torch.ones(300, dtype=torch.bool).to(device)
mask = torch.zeros(2048, 2048).to(truths).view(1, -1).to(device).scatter_(1, chosen.unsqueeze(0), truths.unsqueeze(0))
places = torch.where(mask.view(2048, 2048) == 1.0)
assert (places[0] * 2048 + places[1]).tolist() == sorted(chosen.tolist())
many = torch.arange(1 << 20).to(device)
assert (many > 5).sum().item() == (1 << 20) - 6 and many.cpu()[-1] == (1 << 20) - 1

# What a kernel has written over is no longer what the host had put there.
layer = torch.nn.Linear(4, 4).to(device)
was = layer.weight.detach().clone()
layer(torch.ones(2, 4, device=device)).sum().backward()
torch.optim.AdamW(layer.parameters()).step()
assert not torch.equal(layer.weight, was)

# Nor is it in memory that another tensor takes over.
gone = torch.tensor([5, 6, 7]).to(device)
place = gone.data_ptr()
assert gone.tolist() == [5, 6, 7]
del gone
drawn = torch.randint(0, 10, (3,), device=device)
assert drawn.data_ptr() == place and drawn.tolist() == [1, 1, 1]

# Text is generated until all sequences have ended, at the latest when they have a length.
running, length = torch.ones(4, dtype=torch.long, device="cuda"), 0
while running.max() != 0:
    length += 1
    token = torch.multinomial(torch.rand(4, 8, device="cuda"), 1).squeeze(1)
    ended = torch.full((4,), length >= 6, dtype=torch.bool, device="cuda") | torch.isin(token, torch.tensor([2], device="cuda"))
    running = running & ~ended
assert length == 6, length
