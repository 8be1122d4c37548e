"""Tests of scripts/dev/compare_events."""
import csv
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest

DEV = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts", "dev")
sys.path.insert(0, DEV)

from events_lib import align, oracle_run  # noqa: E402


def rebuilt(found, ours, theirs):
    """What `theirs` must be if the differences are true: nothing outside of them may differ."""
    result, at = [], 0
    for i0, i1, j0, j1 in found:
        result += ours[at:i0] + theirs[j0:j1]
        at = i1
    return result + ours[at:]


class Alignment(unittest.TestCase):
    def test_differences_explain_the_other_side(self):
        rng = random.Random(7)
        for _ in range(60):
            theirs = [rng.choice([1, 2, 3, 4, 5, 6]) for _ in range(rng.randrange(80))]
            ours = [x for x in theirs if rng.random() > 0.1] + [9] * rng.randrange(3)
            self.assertEqual(rebuilt(align.differences(ours, theirs), ours, theirs), theirs)

    def test_one_missing_and_one_extra_event(self):
        theirs = list(range(40))
        ours = theirs[:10] + theirs[11:30] + [99] + theirs[30:]
        self.assertEqual(align.differences(ours, theirs), [(10, 10, 10, 11), (29, 30, 30, 30)])

    def test_equal_differences_are_one_group(self):
        theirs = [1, 2, 3, 4, 5, 6, 7, 8] * 32
        ours = [x for x in theirs if x != 4]
        groups = align.grouped(align.differences(ours, theirs), ours, theirs)
        self.assertEqual([len(g) for g in groups], [32])

    def test_sixty_thousand_events_take_seconds(self):
        rng = random.Random(3)
        theirs = [rng.choice([512, 1024, -513, 4096, 7]) for _ in range(300)] * 200
        ours = [x for x in theirs if rng.random() > 0.01]
        start = time.monotonic()
        self.assertEqual(rebuilt(align.differences(ours, theirs), ours, theirs), theirs)
        self.assertLess(time.monotonic() - start, 20)


def trace():
    """Two phases of a program on the null GPU: (PyTorch trace entries, times of the phases' ends)."""
    frame = {"filename": "/x/site-packages/torch/nn/modules/linear.py", "line": 125, "name": "forward"}
    events = [dict(action="segment_alloc", addr=4096, size=2097152, stream=0, time_us=1),
              dict(action="alloc", addr=4096, size=100, stream=0, time_us=2),
              dict(action="alloc", addr=8192, size=200, stream=0, time_us=12, frames=[{"filename": "", "line": 0, "name": "at::_ops::mm::call("}, frame]),
              dict(action="free_requested", addr=8192, size=200, stream=0, time_us=13),
              dict(action="free_completed", addr=8192, size=200, stream=0, time_us=14)]
    return events, [0, 10, 20]


class Sides(unittest.TestCase):
    def test_events_find_their_phase_and_the_name_of_what_they_free(self):
        rows = oracle_run.named_events(*trace(), ["load", "micro1.forward"])
        self.assertEqual([r[3] for r in rows], ["load", "load"] + ["micro1.forward"] * 3)
        self.assertEqual(rows[3][4:6], ["mm", "torch/nn/modules/linear.py:125:forward"])
        self.assertEqual([b["bytes"] for b in oracle_run.inventory(rows)["blocks"]], [100, 200])

    def compare(self, change):
        rows = oracle_run.named_events(*trace(), ["load", "micro1.forward"])
        with tempfile.TemporaryDirectory() as folder:
            prefix, mine = os.path.join(folder, "oracle"), os.path.join(folder, "mine.csv")
            oracle_run.write_events(prefix + ".events.csv", rows)
            with open(mine, "w", newline="") as f:
                csv.writer(f).writerows([["action", "size", "stream", "phase", "op", "module"]] + [r[:4] + ["aten::mm", "q_proj"] for r in change(rows)])
            done = subprocess.run([sys.executable, os.path.join(DEV, "compare_events"), mine, prefix], stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout

    def test_equal_sides(self):
        code, text = self.compare(lambda rows: rows)
        self.assertEqual(code, 0, text)

    def test_a_missing_block_is_named(self):
        code, text = self.compare(lambda rows: rows[:2])
        self.assertEqual(code, 1)
        self.assertIn("    + alloc            200  s0  mm  torch/nn/modules/linear.py:125:forward", text)


if __name__ == "__main__":
    unittest.main()
