"""torch.distributed.checkpoint where one rank is played: rank 0 gathers what every rank will write, makes one plan of it,
sends each rank its part and writes down what there is. Here the rank that is played does that, as rank 0 would if all held
the same."""
import dataclasses

from . import imports
from .imports import replace


def install(request):
    imports.after_import("torch.distributed.checkpoint.utils", _hook_coordinator)
    imports.after_import("torch.distributed.checkpoint.default_planner",
                         lambda planner: _hook_planner(planner, request))


def _hook_coordinator(utils):
    def make(old):
        def init(wrapper, *arguments, **options):
            old(wrapper, *arguments, **options)
            wrapper.is_coordinator = True

        return init

    replace(utils._DistWrapper, "__init__", make)


def _hook_planner(planner, request):
    """All ranks have the same parts of tensors then, which look as if they were written over and over, and what the other
    ranks really have is missing. What is whole one rank writes: here that is the one that is there."""

    def keep(old):
        def dedup(plans, *unused, **options):
            mine = min(request.rank, len(plans) - 1)
            return [dataclasses.replace(plan, items=[item for item in plan.items
                                                     if rank == mine or item.type is planner.WriteItemType.SHARD])
                    for rank, plan in enumerate(plans)]

        return dedup

    replace(planner, "dedup_save_plans", keep)

    def make(old):
        sound = old([], planner.Metadata(state_dict_metadata={}))  # True, or since torch 2.9 no errors
        return lambda *unused, **options: sound

    replace(planner, "_validate_global_plan", make)
