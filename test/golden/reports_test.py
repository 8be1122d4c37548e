#!/usr/bin/env python3
"""The reports of configs/*.yaml are what they were: verdicts, peaks and what is held, to the byte.

The environment's QLORA_PLAN names the binary. `--update` (scripts/update_golden) writes test/data/golden anew; look at
its diff: a figure that moves without a reason is a defect.
"""

import difflib
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLAN = os.environ.get("QLORA_PLAN", "qlora-plan")
GOLDEN = ROOT / "test/data/golden"
JOBS = sorted((ROOT / "configs").glob("*.yaml"))
NOT_KEPT = {"phases", "top_tensors", "ranks", "options", "loading"}


def kept_of_plan(plan):
    """Without inventories and phases, and without categories that are empty."""
    kept = {key: value for key, value in plan.items() if key not in NOT_KEPT}
    for key, figures in kept.items():
        if isinstance(figures, dict) and "categories" in figures:
            kept[key] = figures | {"categories": {c: n for c, n in figures["categories"].items() if n}}
    if kept.get("training_peak") == kept.get("peak"):
        kept.pop("training_peak", None)  # it is that of the whole run
    return kept


def report(job):
    command = [PLAN, "estimate", str(job.relative_to(ROOT)), "--json"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if process.returncode not in (0, 1):
        raise AssertionError(f"{' '.join(command)} ended with {process.returncode}:\n{process.stderr}")
    full = json.loads(process.stdout)
    kept = {key: full[key] for key in ("verdict", "recommended", "resources") if key in full}
    kept["parameters"] = full["job"]["parameters"]
    kept["plans"] = [kept_of_plan(plan) for plan in full["plans"]]
    return json.dumps(kept, indent=1) + "\n"


class Reports(unittest.TestCase):
    def test_every_job_has_one(self):
        self.assertEqual([job.stem for job in JOBS], sorted(path.stem for path in GOLDEN.glob("*.json")))

    def test_they_are_the_same(self):
        for job in JOBS:
            with self.subTest(job=job.stem):
                before = (GOLDEN / f"{job.stem}.json").read_text().splitlines()
                now = report(job).splitlines()
                difference = "\n".join(difflib.unified_diff(before, now, "golden", "now", lineterm="", n=8))
                self.assertEqual("", difference)


def update():
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for stale in {path.stem for path in GOLDEN.glob("*.json")} - {job.stem for job in JOBS}:
        (GOLDEN / f"{stale}.json").unlink()
    for job in JOBS:
        (GOLDEN / f"{job.stem}.json").write_text(report(job))


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
