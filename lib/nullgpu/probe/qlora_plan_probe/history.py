"""What is alive at the peak: PyTorch's own record of allocations, read when the program is over.

Every block gets a category. What a module, its gradients or an optimizer hold is known by address, looked up at the end
of every phase; of the others the Python line that made them and the phase in which that happened tell.
"""
import collections
import gc
import os
import pickle
import re
import time

import torch

from .launchers import place_of_process

_ENTRIES = 5_000_000
_FRAMES = 4
_ITEMS = 400
_BLOCK = 512  # sizes are rounded to it (c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize)

# Lines of Python that tell what is made in them, by the names that libraries gave them.
_GATHERS = re.compile(r"all_gather|unshard|_alloc_padded_unsharded|allgather|fetch_sub_module")
_LOSSES = re.compile(r"cross_entropy|loss_utils|compute_loss|_loss\b")
_SENDS = re.compile(r"reduce_scatter|all_reduce|reducer|_reduce_and_partition|reduce_tensor|bucket")
# One for each handle and stream, kept for ever: ":4096:2:16:8", and 32 MiB from Hopper on
# (aten/src/ATen/cuda/CublasHandlePool.cpp, getChosenWorkspaceSize).
_WORKSPACES = (8519680, 33554432)
_SKIPPED = ("torch/utils/_", "torch/_ops", "_contextlib", "torch/nn/modules/module.py", "qlora_plan_probe")


class History:
    def __init__(self, request, recorder):
        self._inventory = request.inventory
        self._snapshot = request.snapshot
        self._alone = request.plays_rank
        self._recorder = recorder
        self._optimizers = []
        self._names = []  # (time, {address: (category, name)}) at the end of each phase
        self._phases = []  # (time, name)
        self._on = False

    def install(self, phases):
        torch.cuda._lazy_call(self._begin)  # once there is a device
        phases.on_close.append(self._close)
        phases.on_optimizer.append(self._optimizers.append)

    def _begin(self):
        torch.cuda.memory._record_memory_history(max_entries=_ENTRIES, stacks="python")
        self._on = True

    def _close(self, name):
        now = time.time_ns() // 1000
        self._phases.append((now, name))
        if self._on and self._inventory:
            self._names.append((now, self._holders()))

    def _holders(self):
        """Who holds which block now."""
        held = {}

        def hold(tensor, category, name):
            if isinstance(tensor, torch.Tensor):
                tensor = getattr(tensor, "_local_tensor", tensor)
                if tensor.is_cuda:
                    held.setdefault(tensor.untyped_storage().data_ptr(), (category, name))

        for module in _modules():
            for name, parameter in module.named_parameters():
                adapter = "lora_" in name or "modules_to_save" in name
                hold(parameter, "adapter" if adapter else "parameters", name)
                hold(parameter.grad, "gradients", name)
                hold(getattr(parameter, "data", None), "adapter" if adapter else "parameters", name)
                state = getattr(parameter, "quant_state", None)
                for part in (state, getattr(state, "state2", None)):
                    for field in ("absmax", "code", "offset"):
                        hold(getattr(part, field, None), "quant_state", f"{name}.{field}")
            for name, buffer in module.named_buffers():
                hold(buffer, "parameters", name)
        for optimizer in self._optimizers:
            for state in optimizer.state.values():
                for name, value in state.items() if isinstance(state, dict) else ():
                    hold(value, "optimizer_state", name)
        return held

    def write(self):
        """Into the record, and the snapshot into its file."""
        if not self._on:
            return
        snapshot = torch.cuda.memory._snapshot()
        if self._snapshot:
            with open(_of_this_rank(self._snapshot, self._alone), "wb") as file:
                pickle.dump(snapshot, file)
        if not self._inventory:
            return
        for device, trace in enumerate(snapshot["device_traces"]):
            if trace:
                self._write_peak(device, trace)

    def _write_peak(self, device, trace):
        peak_at, ends = _peak_of(trace)
        alive = {}
        for i, entry in enumerate(trace[: peak_at + 1]):
            if entry["action"] == "alloc" and ends.get(i, len(trace)) > peak_at:
                alive[i] = entry
        groups = collections.defaultdict(lambda: [0, 0, 0])
        for i, entry in alive.items():
            end = trace[ends[i]].get("time_us") if i in ends else None
            category, name, place = self._explain(entry, end)
            group = groups[(category, name, place, entry["size"])]
            group[0] += 1
            group[1] += entry["size"]
            group[2] += -(-entry["size"] // _BLOCK) * _BLOCK
        items = [
            {"category": category, "tensor": name, "place": place, "count": count, "requested": requested,
             "allocated": allocated}
            for (category, name, place, _size), (count, requested, allocated) in groups.items()]
        items.sort(key=lambda item: -item["allocated"])
        self._recorder.write("inventory", device=device, phase=self._phase_at(trace[peak_at].get("time_us", 0)),
                             items=items[:_ITEMS] + _rest(items[_ITEMS:]))

    def _phase_at(self, moment):
        """The one that was over next."""
        return next((name for end, name in self._phases if end >= moment), self._phases[-1][1] if self._phases else "")

    def _explain(self, entry, end):
        """(category, name of the tensor, place) of a block."""
        made = entry.get("time_us", 0)
        place = _place(entry.get("frames", []))
        for moment, held in self._names:
            if made <= moment and (end is None or moment <= end):
                found = held.get(entry["addr"])
                if found:
                    return found[0], _without_layer(found[1]), place
        if end is None and entry["size"] in _WORKSPACES:
            return "workspace", "", place
        if _GATHERS.search(place):
            return "gathered_weights", "", place
        if _SENDS.search(place):
            return "communication_buffers", "", place
        if _LOSSES.search(place):
            return "logits_and_loss", "", place
        phase = self._phase_at(made)
        recomputed = "checkpoint" in place
        backward = phase.endswith("backward") and not recomputed
        return ("gradient_temporaries" if backward or phase.endswith("optimizer") else "activations"), "", place


def _of_this_rank(file, alone):
    """memory.pickle; memory.rank3.pickle where several ranks write one."""
    rank, world_size = place_of_process()
    if alone or world_size == 1:
        return file
    stem, suffix = os.path.splitext(file)
    return f"{stem}.rank{rank}{suffix}"


def _modules():
    """The outermost modules that exist: those that no other one holds."""
    modules = [m for m in gc.get_objects() if issubclass(type(m), torch.nn.Module)]
    inner = {id(child) for m in modules for child in m._modules.values() if child is not None}
    return [m for m in modules if id(m) not in inner and "_parameters" in m.__dict__]


def _peak_of(trace):
    """(event of the peak, {event of an allocation: event of its end})."""
    live, ends, total, peak, peak_at = {}, {}, 0, -1, 0
    for i, entry in enumerate(trace):
        if entry["action"] == "alloc":
            live[entry["addr"]] = i
            total += entry["size"]
            if total > peak:
                peak, peak_at = total, i
        elif entry["action"] == "free_requested":
            start = live.pop(entry["addr"], None)
            if start is not None:
                ends[start] = i
                total -= entry["size"]
    return peak_at, ends


def _place(frames):
    python = [f for f in frames if f["filename"].endswith(".py") and not any(s in f["filename"] for s in _SKIPPED)]
    lines = (f"{f['filename'].split('site-packages/')[-1]}:{f['line']} {f['name']}" for f in python[:_FRAMES])
    return " < ".join(lines) or ("autograd" if frames else "?")


def _without_layer(name):
    return re.sub(r"\.\d+\.", ".*.", name)


def _rest(items):
    """What is too small to be listed by itself, by category."""
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for item in items:
        for i, key in enumerate(("count", "requested", "allocated")):
            sums[item["category"]][i] += item[key]
    return [{"category": category, "tensor": "", "place": "others", "count": c, "requested": r, "allocated": a}
            for category, (c, r, a) in sums.items()]
