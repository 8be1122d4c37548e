"""Runs the oracle's run_case.py unchanged and notes when each phase ended.

    marked_case.py MARKS.txt ORACLE_DIR CASE.json OUT.json

Runs inside the oracle's own Python. run_case.py resets the peak statistics once before loading and once at the end of
every phase; the time of each reset, in microseconds, becomes one line of MARKS.txt. The allocator's trace carries times
of the same clock, which is how its events find their phase.
"""
import json
import os
import runpy
import sys
import time


def main():
    marks, oracle, case, out = sys.argv[1:5]
    with open(case) as f:
        os.environ.update(json.load(f).get("alloc_env", {}))  # before torch reads the allocator's options
    import torch

    reset = torch.cuda.reset_peak_memory_stats

    def marking_reset(*args, **kwargs):
        with open(marks, "a") as f:
            f.write("%d\n" % (time.time_ns() // 1000))
        return reset(*args, **kwargs)

    torch.cuda.reset_peak_memory_stats = marking_reset
    script = os.path.join(oracle, "run_case.py")
    sys.path.insert(0, oracle)
    sys.argv = [script, case, out]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
