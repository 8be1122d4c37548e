"""Takes memory until there is none."""
import torch

parts = []
while True:
    parts.append(torch.empty(1 << 30, device="cuda"))
