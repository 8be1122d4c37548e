"""A program that is over while a thread of its own is in C++, which asks for the interpreter when it comes back."""
import threading
import time

import torch

weights = torch.nn.Parameter(torch.randn(64, 64, device="cuda"))
optimizer = torch.optim.SGD([weights])
weights.sum().backward()
optimizer.step()
begun = threading.Event()


def work():
    large = torch.randn(2048, 2048)
    begun.set()
    for _ in range(50):
        large = large @ large


threading.Thread(target=work, daemon=True).start()
begun.wait()
time.sleep(0.2)
