"""torchrun, `accelerate launch`, `deepspeed` and their like start as many processes as there are ranks. All of them show
as many devices as they start processes; where one rank is played, only that one is started."""
import os
import sys

from . import imports
from .ending import rank_of_process
from .imports import replace


def install(request):
    imports.after_import("torch.distributed.launcher.api", lambda module: _hook_elastic(module, request))
    if "deepspeed.launcher.launch" in getattr(sys, "orig_argv", []):
        _hook_deepspeed(request)
    imports.after_import("torch.multiprocessing.spawn", lambda module: _hook_spawn(module, request))


def _hook_elastic(module, request):
    def make(old):
        def launch(self, *arguments):
            processes = self._config.nproc_per_node
            if not request.plays_rank:
                os.environ["NULLGPU_DEVICES"] = _devices_for(processes)
                return old(self, *arguments)
            if isinstance(self._entrypoint, str):
                os.execvp(self._entrypoint, [self._entrypoint, *arguments])
            return {request.rank: self._entrypoint(*arguments)}

        return launch

    replace(module.elastic_launch, "__call__", make)


# Ranks of this machine, as torchrun, deepspeed, Open MPI and MPICH tell each process.
_LOCAL_SIZES = ("LOCAL_WORLD_SIZE", "LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")


def meet_other_ranks():
    """Where a launcher has started this process beside others, they really tell each other what is short."""
    if any(os.environ.get(name, "1") not in ("", "0", "1") for name in _LOCAL_SIZES):
        os.environ["NULLGPU_RANKS"] = "real"


def _devices_for(processes):
    return str(max(int(processes), int(os.environ.get("NULLGPU_DEVICES", 1))))


_OF_RANK = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK")


def _hook_deepspeed(request):
    """`deepspeed train.py` starts a launcher, this process, which starts one for every GPU by Popen, with the ranks in the
    variables of each (deepspeed/launcher/launch.py)."""
    import subprocess

    def alone(command, environment):
        """The process of local rank 0 is the one that is played; the others end at once."""
        if environment["LOCAL_RANK"] != "0":
            return [sys.executable, "-S", "-c", ""], environment
        mine = {name: os.environ[name] for name in _OF_RANK}
        shown = os.environ.get("CUDA_VISIBLE_DEVICES")  # not those of the launcher's own number of ranks
        environment = {name: value for name, value in environment.items() if name != "CUDA_VISIBLE_DEVICES"}
        environment |= mine | ({"CUDA_VISIBLE_DEVICES": shown} if shown is not None else {})
        return [f"--local_rank={request.local_rank}" if word == "--local_rank=0" else word for word in command], environment

    class Popen(subprocess.Popen):
        def __init__(self, command, *arguments, **options):
            environment = options.get("env") or {}
            if "LOCAL_RANK" in environment and isinstance(command, list):
                if request.plays_rank:
                    command, options["env"] = alone(command, environment)
                else:
                    options["env"] = environment | {"NULLGPU_DEVICES": _devices_for(environment.get("LOCAL_SIZE", 1))}
            super().__init__(command, *arguments, **options)

    subprocess.Popen = Popen


_place = []  # rank and number of ranks, where torch.multiprocessing started this process


class _Placed:
    """What such a process runs: it notes its rank, which no variable of the environment holds."""

    def __init__(self, fn, ranks):
        self._fn, self._ranks = fn, ranks

    def __call__(self, rank, *arguments):
        _place[:] = rank, self._ranks
        return self._fn(rank, *arguments)


def place_of_process():
    """(rank, number of ranks), however the process was started."""
    return tuple(_place) or rank_of_process()


def _hook_spawn(module, request):
    """The functions are names of the package too, where the module of the same name is hidden behind one of them."""
    import torch.multiprocessing as package

    def play(old):
        return lambda fn, args=(), nprocs=1, *unused, **options: fn(request.rank % nprocs, *args)

    def meet(old):
        def start_processes(fn, args=(), nprocs=1, *more, **options):
            if nprocs > 1:
                os.environ["NULLGPU_RANKS"] = "real"
                os.environ["NULLGPU_DEVICES"] = _devices_for(nprocs)
                fn = _Placed(fn, nprocs)
            return old(fn, args, nprocs, *more, **options)

        return start_processes

    for holder in (module, package):
        replace(holder, "start_processes", play if request.plays_rank else meet)
        replace(holder, "spawn", play if request.plays_rank else meet)
