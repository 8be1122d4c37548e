"""One process plays rank R of N: its environment, its rendezvous, and collectives that nobody else takes part in.

On the device the null GPU's NCCL returns at once, with what every rank would hold if all held the same. Here is the rest:
a store that waits for nobody, host tensors in groups of a backend that sends nothing, and collectives of Python objects.
"""
import inspect
import os
import sys
from datetime import timedelta

from . import checkpoints, imports
from .imports import replace


def set_environment(request):
    """As torchrun sets it; a launcher within the program sets the same once more."""
    os.environ.update(
        RANK=str(request.rank), WORLD_SIZE=str(request.world_size), LOCAL_RANK=str(request.local_rank),
        LOCAL_WORLD_SIZE=str(request.local_world_size), GROUP_RANK=str(request.rank // request.gpus_per_node),
        NODE_RANK=str(request.rank // request.gpus_per_node))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    # Watchdogs that look for peers through the store.
    os.environ.setdefault("TORCH_NCCL_ENABLE_MONITORING", "0")
    os.environ.setdefault("TORCH_NCCL_DUMP_ON_TIMEOUT", "0")


def install(request):
    imports.after_import("torch.distributed.distributed_c10d", lambda c10d: _hook_c10d(c10d, request))
    checkpoints.install(request)
    if request.rank != 0:
        imports.after_import("deepspeed.runtime.zero.utils", _hook_zero_checks)


def _hook_zero_checks(utils):
    """ZeRO-3 checks that all ranks hold the lists of rank 0: the others make room for what it sends (assert_lst_len_same_
    as_other_ranks, get_lst_from_rank0), which nobody fills in here. Where it takes itself for rank 0 it puts its own list
    there, which is what rank 0 would send if it held the same."""

    class AsRankZero:
        def __init__(self, communication):
            self._communication = communication

        def get_rank(self, *_group):
            return 0

        def __getattr__(self, name):
            return getattr(self._communication, name)

    def make(old):
        def check(numbers):
            communication = utils.dist
            utils.dist = AsRankZero(communication)
            try:
                return old(numbers)
            finally:
                utils.dist = communication

        return check

    for name in ("assert_lst_len_same_as_other_ranks", "get_lst_from_rank0"):
        replace(utils, name, make)


def _lonely_store(request):
    """A store in which nobody is waited for: what another rank would have put there is made up."""
    import torch.distributed as dist

    class LonelyStore(dist.Store):
        def __init__(self):
            super().__init__()
            self._values = {}
            self._timeout = timedelta(seconds=300)

        def set(self, key, value):
            self._values[key] = value if isinstance(value, bytes) else str(value).encode()

        def get(self, key):
            # NCCL's id of a communicator that another rank opens has 128 bytes.
            return self._values.get(key, b"\7" * 128)

        def add(self, key, amount):
            value = int(self._values.get(key, b"0")) + amount
            self._values[key] = str(value).encode()
            return value

        def compare_set(self, key, expected, desired):
            now = self._values.get(key)
            wanted = expected.encode() if isinstance(expected, str) else expected
            if now is None or now == wanted:
                self.set(key, desired)
            return self._values[key]

        def wait(self, keys, timeout=None):
            return None

        def check(self, keys):  # asked by watchdogs: whether another rank has died
            return all(key in self._values for key in keys)

        def delete_key(self, key):
            return self._values.pop(key, None) is not None

        def num_keys(self):
            return len(self._values)

        def set_timeout(self, timeout):
            self._timeout = timeout

        def append(self, key, value):
            self._values[key] = self._values.get(key, b"") + (value if isinstance(value, bytes) else str(value).encode())

        def multi_get(self, keys):
            return [self.get(key) for key in keys]

        def multi_set(self, keys, values):
            for key, value in zip(keys, values):
                self.set(key, value)

        def has_extended_api(self):
            return True

        def clone(self):
            return self

    return LonelyStore()


def _alone(backend):
    """The backend with host tensors left to one that sends nothing; the device's stays NCCL."""
    if backend is None or str(backend) in ("", "undefined"):
        return "cpu:fake,cuda:nccl"
    return str(backend).lower().replace("gloo", "fake").replace("mpi", "fake")


def _hook_c10d(c10d, request):
    state = {}

    def init(old):
        def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None,
                               group_name="", pg_options=None, device_id=None, **more):
            import torch.testing._internal.distributed.fake_pg  # noqa: F401  registers the backend "fake"

            options = dict(more)
            if timeout is not None:
                options["timeout"] = timeout
            if pg_options is not None:
                options["pg_options"] = pg_options
            # Without device_id: groups that are bound to theirs make others by ncclCommSplit, and how many ranks
            # those have is what only all of them together know.
            state["store"] = _lonely_store(request)
            return old(_alone(backend), store=state["store"], world_size=request.world_size, rank=request.rank,
                       group_name=group_name, **options)

        return init_process_group

    def group(old):
        def new_group(ranks=None, timeout=None, backend=None, *arguments, **options):
            return old(ranks, timeout, _alone(backend) if backend else backend, *arguments, **options)

        return new_group

    def everywhere(name, make):
        """In modules of torch that have taken the function from this one already, too: init_device_mesh has. The names are
        those of torch.distributed as well, which is imported after this module."""
        old = getattr(c10d, name, None)
        replace(c10d, name, make)
        for other in list(sys.modules.values()):
            if old is not None and getattr(other, "__name__", "").startswith("torch.") and vars(other).get(name) is old:
                setattr(other, name, getattr(c10d, name))
        imports.after_import("torch.distributed", lambda package: setattr(package, name, getattr(c10d, name)))

    everywhere("init_process_group", init)
    everywhere("new_group", group)
    everywhere("all_gather_object", lambda old: _all_gather_object)
    everywhere("gather_object", lambda old: _gather_object(request))
    everywhere("broadcast_object_list", lambda old: lambda *arguments, **options: None)
    everywhere("scatter_object_list", lambda old: _scatter_object_list(request))
    everywhere("monitored_barrier", lambda old: lambda *arguments, **options: None)
    # Lightning takes that of the group itself, which the backend of host tensors lacks.
    replace(c10d.ProcessGroup, "monitored_barrier", lambda old: lambda *arguments, **options: None)
    for name, output, source, fill in (
            ("all_gather", "tensor_list", "tensor", _fill_list),
            ("all_gather_into_tensor", "output_tensor", "input_tensor", _fill_tensor),
            ("gather", "gather_list", "tensor", _fill_list),
            ("all_to_all_single", "output", "input", _fill_same)):
        everywhere(name, lambda old, output=output, source=source, fill=fill: _on_host(old, output, source, fill))


def _all_gather_object(object_list, obj, group=None):
    for i in range(len(object_list)):
        object_list[i] = obj


def _gather_object(request):
    def gather_object(obj, object_gather_list=None, dst=None, group=None, **options):
        for i in range(len(object_gather_list or [])):
            object_gather_list[i] = obj

    return gather_object


def _scatter_object_list(request):
    def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, **options):
        inputs = scatter_object_input_list
        if inputs:
            scatter_object_output_list[0] = inputs[min(request.rank, len(inputs) - 1)]

    return scatter_object_list


def _on_host(old, output, source, fill):
    """The backend of host tensors writes nothing: what all ranks hold is what this one holds."""
    signature = inspect.signature(old)

    def collective(*arguments, **options):
        result = old(*arguments, **options)
        named = signature.bind(*arguments, **options).arguments
        mine = named.get(source)
        if getattr(mine, "is_cpu", False) and named.get(output) is not None:
            fill(named[output], mine)
        return result

    return collective


def _fill_list(output, source):
    for tensor in output:
        tensor.copy_(source)


def _fill_tensor(output, source):
    if source.numel():
        output.view(-1, source.numel()).copy_(source.reshape(1, -1))


def _fill_same(output, source):
    if output.numel() == source.numel():
        output.copy_(source)
