"""Answers to a program that reads what a kernel would have written.

A bool is true (false at last, where a line asks for it without end); a float is small and positive, a little less at
each read, as a loss is; an integer is 1. Two tensors of which one was computed are not equal (weights that were trained
have moved); every element of a computed mask is set; a computed number compares as 0.01, an integer as 1 ("compare": no
NaN, no overflow, no end-of-sequence token).
What the host wrote, and what follows from it (operations.py), is read as it is. Each answer is counted with the line of
the program that asked, and can be set: by that line, or for all of a kind.
"""
import os
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from . import collectives, made
from .loops import Rounds
from .operations import Operations, composite
from .values import Uniform, Values, is_read

aten = torch.ops.aten
_PATIENCE = 2000  # truths that a `while` gets in one phase before it counts as one that only a false ends
_PATIENCE_FOR_SHARES = 100  # what tends to 1 (similarities, accuracies) is as large as it has to be after so many
_HERE = os.path.dirname(os.path.abspath(__file__))
_TORCH = os.path.dirname(os.path.abspath(torch.__file__))


class Answers:
    def __init__(self, request, recorder):
        self._set = request.answers
        self._recorder = recorder
        self._values = Values()
        self._operations = Operations(self._values, self._compare)
        self._reads = 0
        self._rounds = Rounds()
        self._given = {}  # (kind, operation, place) -> [first answer, count]

    def install(self, plays_rank):
        self._operations.install({
            "_local_scalar_dense": self._item,
            "copy_": self._copy,
            "nonzero": self._nonzero,
            "equal": self._equal,
            "allclose": lambda a, b, rtol=1e-5, atol=1e-8, equal_nan=False: self._close(a, b, rtol, atol, equal_nan),
            "_unique2": self._unique,
            "_linalg_check_errors": self._check_errors,
        })
        register_optimizer_step_post_hook(self._trained)
        collectives.install(self._values, plays_rank)

    def write(self):
        """Into the record: every answer with its place."""
        for (kind, operation, place), (value, count) in sorted(self._given.items()):
            self._recorder.write("answer", kind=kind, operation=operation, place=place, value=value, count=count)

    # ---- reads -------------------------------------------------------------------------------------------------
    def _item(self, tensor):
        value = self._values.of(tensor)
        if value is None:
            return self._scalar(tensor.dtype, "item")
        return value.value if isinstance(value, Uniform) else value.item()

    def _copy(self, result, tensor, non_blocking=False):
        if result.is_cuda:
            self._operations.copy(result, tensor, non_blocking)
        else:
            composite(aten.copy_.default, result, tensor, non_blocking)
            if tensor.is_cuda and result.device.type == "cpu":
                self._read(tensor, result)
        return result

    def _read(self, tensor, result):
        """A copy has brought the tensor to the host: as zeros, where nobody computed it."""
        if not is_read(tensor):
            return
        value = self._values.of(tensor)
        if value is None:
            result.fill_(self._scalar(tensor.dtype, "cpu"))
        elif isinstance(value, Uniform):
            result.fill_(value.value)

    def _nonzero(self, tensor):
        """The operation runs for what it allocates on the way. It reads a count that no kernel has written, from the
        block that was freed last, where something else may have left any number."""
        dense = aten.contiguous.default(tensor)  # as it does first
        self._values.put(made.empty(1, dtype=torch.int32, device=tensor.device), made.full((1,), 0, dtype=torch.int32))
        aten.nonzero.out(dense, out=made.empty(0, dtype=torch.int64, device=tensor.device))
        del dense
        value = self._values.of(tensor)
        if value is None:
            chosen = self._answer("nonzero", "nonzero", True)
            value = Uniform(bool(chosen))
        if isinstance(value, Uniform):
            rows = tensor.numel() if value.value else 0
            return made.empty((tensor.dim(), rows), dtype=torch.int64, device=tensor.device).t()
        indices = value.nonzero()
        result = made.empty((tensor.dim(), indices.shape[0]), dtype=torch.int64, device=tensor.device).t()
        self._values.put(result, indices)
        return result

    def _equal(self, left, right):
        if left.shape != right.shape:
            return False
        if left.data_ptr() == right.data_ptr() and left.stride() == right.stride():
            return True
        one, other = self._values.of(left), self._values.of(right)
        if one is None or other is None:
            return bool(self._answer("equal", "equal", False))
        return _both(torch.equal, one, other, left.shape)

    def _close(self, left, right, rtol, atol, equal_nan):
        if left.data_ptr() == right.data_ptr() and left.shape == right.shape:
            return True
        one, other = self._values.of(left), self._values.of(right)
        if one is None or other is None:
            return bool(self._answer("equal", "allclose", False))
        return _both(lambda a, b: torch.allclose(a, b, rtol, atol, equal_nan), one, other, left.shape)

    def _unique(self, tensor, sorted=True, return_inverse=False, return_counts=False):
        value = self._values.of(tensor)
        if value is None or isinstance(value, Uniform):
            value = made.arange(tensor.numel()).reshape(tensor.shape).to(tensor.dtype)
            self._answer("nonzero", "unique", True)
        parts = aten._unique2.default(value, sorted, return_inverse, return_counts)
        return tuple(part.to(tensor.device) for part in parts)

    def _check_errors(self, infos, api_name, *, is_matrix):
        """A factorization whose kernels did not run has succeeded."""
        if self._values.of(infos) is not None:
            composite(aten._linalg_check_errors.default, infos, api_name, is_matrix=is_matrix)

    def _trained(self, optimizer, *_unused):
        """What the host once put into weights is not in them any more."""
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._values.put(getattr(parameter, "_local_tensor", parameter), None)

    # ---- rules -------------------------------------------------------------------------------------------------
    def _scalar(self, dtype, operation):
        if dtype is torch.bool:
            return bool(self._answer("bool", operation, not self._in_loop()))
        if dtype.is_floating_point:
            self._reads += 1
            return float(self._answer("float", operation, 0.01 * (1 + 1 / self._reads)))
        if dtype.is_complex:
            return complex(self._answer("float", operation, 0.01))
        return int(self._answer("int", operation, 1))

    def _compare(self, operation, value, number):
        share = not value and operation in ("gt", "ge") and 0.5 <= number < 1
        if value or operation == "eq" or share:
            if self._in_loop(_PATIENCE_FOR_SHARES if share else _PATIENCE):
                value = not value
        return self._answer("compare", operation, value)

    def phase_over(self, _name):
        self._rounds.clear()

    def _in_loop(self, patience=_PATIENCE):
        """Whether the program waits there for another answer, as one does that draws numbers until all are right."""
        return self._rounds.is_stuck(_place(), patience)

    def _answer(self, kind, operation, usual):
        place, file_line = _place()
        value = self._set.get(file_line, self._set.get(kind, usual))
        entry = self._given.setdefault((kind, operation, place), [value, 0])
        if kind in ("bool", "compare") and value != entry[0]:
            entry = self._given.setdefault((kind, operation + " in a loop", place), [value, 0])
        entry[1] += 1
        return value


def _both(function, one, other, shape):
    whole = [made.full(shape, v.value) if isinstance(v, Uniform) else v for v in (one, other)]
    return bool(function(whole[0], whole[1].to(whole[0].dtype)))


def _place():
    """("train.py:12 (function)", "train.py:12"): the line that asked, outside of torch and the probe."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((_HERE, _TORCH, "<")):
            short = file.split("site-packages/")[-1] if "site-packages/" in file else os.path.relpath(file)
            if short.startswith(".."):
                short = file
            return f"{short}:{frame.f_lineno} ({frame.f_code.co_name})", f"{os.path.basename(file)}:{frame.f_lineno}"
        frame = frame.f_back
    return "backward pass", ""
