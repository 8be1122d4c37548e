"""torchrun, `accelerate launch` and their like start as many processes as there are ranks. All of them show as many
devices as they start processes; where one rank is played, only that one is started."""
import os

from . import imports
from .imports import replace


def install(request):
    imports.after_import("torch.distributed.launcher.api", lambda module: _hook_elastic(module, request))
    if request.plays_rank:
        imports.after_import("torch.multiprocessing.spawn", lambda module: _hook_spawn(module, request))


def _hook_elastic(module, request):
    def make(old):
        def launch(self, *arguments):
            processes = self._config.nproc_per_node
            if not request.plays_rank:
                devices = max(processes, int(os.environ.get("NULLGPU_DEVICES", 1)))
                os.environ["NULLGPU_DEVICES"] = str(devices)
                return old(self, *arguments)
            if isinstance(self._entrypoint, str):
                os.execvp(self._entrypoint, [self._entrypoint, *arguments])
            return {request.rank: self._entrypoint(*arguments)}

        return launch

    replace(module.elastic_launch, "__call__", make)


def _hook_spawn(module, request):
    """The functions are names of the package too, where the module of the same name is hidden behind one of them."""
    import torch.multiprocessing as package

    def make(old):
        return lambda fn, args=(), nprocs=1, *unused, **options: fn(request.rank % nprocs, *args)

    for holder in (module, package):
        replace(holder, "start_processes", make)
        replace(holder, "spawn", make)
