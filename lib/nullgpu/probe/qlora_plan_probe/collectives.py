"""Collectives and known values: the library really exchanges what is small, and nobody else sees it written."""
import torch

from . import imports
from .imports import replace
from .operations import composite
from .values import Uniform

_NAMES = ("all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single", "batch_isend_irecv",
          "broadcast", "gather", "irecv", "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter")
_NATIVE = ("_broadcast_coalesced", "_verify_params_across_processes")  # they run collectives of their own
_FUNCTIONAL = ("all_gather_into_tensor", "all_reduce", "all_to_all_single", "broadcast", "reduce_scatter_tensor")
_SAME = ("all_gather_into_tensor", "broadcast")  # all ranks hold the same where one is played: so does the result

_libraries = []


def install(values, plays_rank):
    imports.after_import("torch.distributed.distributed_c10d", lambda module: _hook_functions(module, values))
    imports.after_import("torch.distributed._functional_collectives",
                         lambda module: _hook_functional(values, plays_rank))


def _hook_functions(module, values):
    def make(old):
        def collective(*arguments, **options):
            values.before_unseen_writes()
            return old(*arguments, **options)

        return collective

    for name in _NAMES:
        replace(module, name, make)
        imports.after_import("torch.distributed",
                             lambda package, name=name: setattr(package, name, getattr(module, name)))
    replace(module, "_object_to_tensor", lambda old: _object_to_tensor(old, values))
    for name in _NATIVE:
        imports.after_import("torch.distributed", lambda package, name=name: replace(package, name, make))


def _object_to_tensor(old, values):
    """An object on its way to other ranks is known, however long it is."""
    def to_tensor(value, device, *rest):
        host, length = old(value, torch.device("cpu"), *rest)
        tensor = host.to(device)
        values.put_long(tensor, host)
        return tensor, length.to(device)

    return to_tensor


def _hook_functional(values, plays_rank):
    """Those that DTensor uses."""
    library = torch.library.Library("_c10d_functional", "IMPL")
    _libraries.append(library)

    def make(name):
        operation = getattr(torch.ops._c10d_functional, name).default

        def collective(tensor, *arguments):
            values.before_unseen_writes()
            value = values.of(tensor) if plays_rank and name in _SAME else None
            out = composite(operation, tensor, *arguments)
            if isinstance(value, Uniform):
                values.put(out, value)
            return out

        return collective

    for name in _FUNCTIONAL:
        if hasattr(torch.ops._c10d_functional, name):
            library.impl(name, make(name), "CUDA")
