"""Dies of a signal in the middle of its work."""
import ctypes

import torch


def work(weights):
    ctypes.string_at(0)
    return weights


work(torch.zeros(4, device="cuda"))
