"""Which tensors of the device hold values that are known.

Known is what the host put there (batches, masks, constants) and what follows from it (operations.py). The library keeps
it byte by byte; large tensors are known only if all of their elements are the same ("uniform").
"""
import itertools

import torch

from . import library, made
from .owners import Owners

LARGEST = 1 << 20  # bytes that a copy really brings (lib/trace/environment.cc, kRealCopies)
# Bytes of a tensor that is worked out. Weights and their state are larger, quantized ones too, and programs do not look
# at single elements of them. They do at those of masks over a weight matrix (PEFT's SHiRA) or 8 Ki tokens squared, and
# of large batches.
_LARGEST_FLOAT = 1 << 16
_LARGEST_OF_TOKENS = 1 << 26
_RUNS = 4096  # pieces of a tensor with gaps that are written one by one


class Uniform:
    """All elements are this one."""

    def __init__(self, value):
        self.value = value


class Values:
    def __init__(self):
        self._owners = Owners()

    def of(self, tensor):
        """A host tensor with the values, Uniform, or None where a kernel would have written them."""
        if not tensor.is_cuda:
            return tensor if tensor.device.type == "cpu" else None
        if tensor.numel() == 0:
            return made.empty(tensor.shape, dtype=tensor.dtype)
        owner = self._owners.of(tensor.untyped_storage())
        if owner is not None and owner.uniform is not None:
            return owner.uniform
        size = _span(tensor) * tensor.element_size()
        is_read = size <= _most(tensor.dtype, LARGEST) or is_of_objects(tensor)
        if not is_read or not library.written_by_host(tensor.data_ptr(), size):
            return None
        if owner is None:
            self._owners.claim(tensor.untyped_storage())
            if not library.written_by_host(tensor.data_ptr(), size):
                return None
        return self._span_of(tensor).as_strided(tensor.shape, tensor.stride())

    def whole(self, tensor):
        """As of(), with Uniform written out where that is small."""
        value = self.of(tensor)
        if not isinstance(value, Uniform):
            return value
        return made.full(tensor.shape, value.value, dtype=tensor.dtype) if is_small(tensor) else None

    def claim(self, tensor):
        """Known bytes are about to be copied there."""
        self._owners.claim(tensor.untyped_storage()).uniform = None

    def before_unseen_writes(self):
        """The library is about to write known bytes by itself, as collectives do."""
        self._owners.drop_gone()

    def put(self, tensor, value):
        """The tensor's values are these from now on; None: nobody knows them."""
        if not tensor.numel() or not tensor.is_cuda:
            return
        storage = tensor.untyped_storage()
        if isinstance(value, torch.Tensor) and is_of_objects(tensor) and tensor.is_contiguous():
            self.put_long(tensor, value.contiguous())
        elif value is None or not is_small(tensor):
            owner = self._owners.of(storage)
            if owner is not None:
                owner.uniform = None
            self._forget(tensor)
            if isinstance(value, Uniform) and storage.nbytes() == tensor.numel() * tensor.element_size():
                self._owners.claim(storage).uniform = value
        else:
            self.claim(tensor)
            self._write(tensor, value)

    def put_long(self, tensor, host):
        """As put(), of however many bytes behind one another."""
        size = tensor.numel() * tensor.element_size()
        if size and tensor.is_cuda:
            self.claim(tensor)
            library.write_from(tensor.data_ptr(), host.data_ptr(), size)

    @staticmethod
    def _forget(tensor):
        size = _span(tensor) * tensor.element_size()
        if size <= LARGEST or not tensor.is_floating_point():
            library.forget(tensor.data_ptr(), size)

    @staticmethod
    def _span_of(tensor):
        host = made.empty(_span(tensor), dtype=tensor.dtype)
        library.read_into(host.data_ptr(), tensor.data_ptr(), _span(tensor) * tensor.element_size())
        return host

    def _write(self, tensor, value):
        size = _span(tensor) * tensor.element_size()
        dense = tensor.numel() == _span(tensor)
        if not dense and size > _most(tensor.dtype, LARGEST):
            self._forget(tensor)
            return
        within = dense or library.written_by_host(tensor.data_ptr(), size)  # gaps keep what they hold
        host = self._span_of(tensor) if within and not dense else made.empty(_span(tensor), dtype=tensor.dtype)
        filled = host.as_strided(tensor.shape, tensor.stride())
        if isinstance(value, Uniform):
            filled.fill_(value.value)
        else:
            filled.copy_(value)
        if within:
            library.write_from(tensor.data_ptr(), host.data_ptr(), size)
        else:
            self._write_runs(tensor, filled)

    def _write_runs(self, tensor, host):
        """Piece by piece, where what lies between is not known."""
        run = tensor.shape[-1] if tensor.stride(-1) == 1 else 1
        outer = tensor.shape[:-1] if tensor.stride(-1) == 1 else tensor.shape
        if tensor.numel() // run > _RUNS:
            self._forget(tensor)
            return
        for index in itertools.product(*(range(length) for length in outer)):
            here, there = tensor[index], host[index]
            library.write_from(here.data_ptr(), there.data_ptr(), run * tensor.element_size())


def is_small(tensor):
    """Whether it is worked out."""
    return tensor.numel() * tensor.element_size() <= _most(tensor.dtype, _LARGEST_FLOAT)


def is_of_objects(tensor):
    """Whether it may be objects on their way between ranks, of which there are few: they are known however long they are.
    (So may be weights of bytes, which the host does not really put there.)"""
    return tensor.dtype is torch.uint8


def is_read(tensor):
    """Whether what it holds is brought to the host."""
    return 0 < tensor.numel() * tensor.element_size() <= _most(tensor.dtype, LARGEST) and not tensor.is_complex()


def _most(dtype, of_floats):
    if dtype in (torch.bool, torch.int64):
        return _LARGEST_OF_TOKENS
    return of_floats if dtype.is_floating_point else LARGEST


def _span(tensor):
    """Elements from the first to the last that the tensor touches."""
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0
