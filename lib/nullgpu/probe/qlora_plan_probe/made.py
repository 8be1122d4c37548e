"""torch's constructors as they were when the probe began, on the host unless told otherwise. A program may set another
default device, and DeepSpeed's ZeRO-3, while it makes a model, puts constructors in their place whose tensors are on the
device and of another type (deepspeed/runtime/zero/partition_parameters.py)."""
from functools import partial

import torch

arange, empty, full, tensor = (
    partial(make, device="cpu") for make in (torch.arange, torch.empty, torch.full, torch.tensor))
