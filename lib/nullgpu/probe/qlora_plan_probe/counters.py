"""PyTorch's allocator counters, read by two: the probe, which wants the peak of each phase, and the program, which must
see what it would see without a probe.

The allocator has one set of peaks. The probe resets them at the end of every phase and keeps what they were; calls of
the program are answered with the larger of what the allocator says and what was kept since the program's own last
reset.
"""
import torch

from .imports import replace

_KINDS = ("requested", "allocated", "active", "reserved")


def _peaks(stats, path=()):
    """[(("allocated_bytes", "all"), {"current": ..., "peak": ...})], however deep it lies: torch 2.14 has private pools
    one by one."""
    for name, figures in stats.items():
        if isinstance(figures, dict):
            if "peak" in figures:
                yield (*path, name), figures
            else:
                yield from _peaks(figures, (*path, name))


class Counters:
    def __init__(self):
        self._stats = torch._C._cuda_memoryStats
        self._reset = torch._C._cuda_resetPeakMemoryStats
        self._kept = {}  # device -> {(statistic, pool, ...): peak since the program's last reset}
        self._since_phase = {}  # device -> {(statistic, pool, ...): peak since the phase began}
        replace(torch._C, "_cuda_memoryStats", lambda old: self._program_stats)
        replace(torch._C, "_cuda_resetPeakMemoryStats", lambda old: self._program_reset)
        replace(torch._C, "_accelerator_getDeviceStats", self._accelerator_stats)
        replace(torch._C, "_accelerator_resetPeakStats", lambda old: self._program_reset)

    def _harvest(self, device, into):
        for key, figures in _peaks(self._stats(device)):
            into[key] = max(into.get(key, 0), figures["peak"])

    @staticmethod
    def _raised(stats, kept):
        for key, figures in _peaks(stats):
            figures["peak"] = max(figures["peak"], kept.get(key, 0))
        return stats

    def _program_stats(self, device):
        return self._raised(self._stats(device), self._kept.get(device, {}))

    def _accelerator_stats(self, old):
        return lambda device: self._raised(old(device), self._kept.get(device, {}))

    def _program_reset(self, device):
        self._harvest(device, self._since_phase.setdefault(device, {}))
        self._kept.pop(device, None)
        return self._reset(device)

    def close_phase(self):
        """[(device, peaks, held, retries)] of every device that holds or held memory; the next phase begins."""
        if not torch.cuda.is_initialized():
            return []
        rows = []
        for device in range(torch.cuda.device_count()):
            stats = self._stats(device)
            if not stats or stats["reserved_bytes"]["all"]["peak"] == 0:
                continue
            earlier = self._since_phase.pop(device, {})
            peaks, held = {}, {}
            for kind in _KINDS:
                figures = stats[f"{kind}_bytes"]["all"]
                peaks[kind] = max(figures["peak"], earlier.get((f"{kind}_bytes", "all"), 0))
                held[kind] = figures["current"]
            self._harvest(device, self._kept.setdefault(device, {}))
            self._reset(device)
            rows.append((device, peaks, held, {"retries": stats["num_alloc_retries"], "ooms": stats["num_ooms"]}))
        return rows
