"""Cuts the run into the phases of qlora-plan's report and counts what PyTorch's allocator held in each."""

import json
import sys

KINDS = ("requested", "allocated", "active", "reserved")


class Phases:
    def __init__(self, torch):
        self._torch = torch
        self.rows = []
        probe = sys.modules.get("qlora_plan_probe")  # under `qlora-plan trace`
        self._tell_probe = probe.own_phases() if probe else lambda name: None

    def mark(self, name):
        """Closes a phase: its peaks, and what is held at its end."""
        cuda = self._torch.cuda
        cuda.synchronize()
        self._tell_probe(name)
        stats = cuda.memory_stats()

        def figures(which):
            return {f"{kind}_bytes": stats.get(f"{kind}_bytes.all.{which}", 0) for kind in KINDS}

        free, total = cuda.mem_get_info()
        self.rows.append(
            {
                "name": name,
                "peak": figures("peak"),
                "held": figures("current"),
                "device_used_bytes": total - free,
                "retries": stats.get("num_alloc_retries", 0),
            }
        )
        cuda.reset_peak_memory_stats()

    def training_peak(self):
        rows = [row for row in self.rows if row["name"] not in ("load", "adapter", "prepare")]
        return {key: max(row["peak"][key] for row in rows) for key in rows[0]["peak"]} if rows else None

    def write(self, path, more):
        """`more`: what stands beside the phases."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(more | {"training_peak": self.training_peak(), "phases": self.rows}, file, indent=2)
            file.write("\n")
