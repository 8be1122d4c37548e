"""Runs a case on the oracle and turns its memory snapshot into an event sequence with phases and names."""
import csv
import json
import os
import pickle
import re
import subprocess
import tempfile

COLUMNS = ["action", "size", "stream", "phase", "op", "module", "address"]
SKIPPED_FILES = ("torch/utils/_", "torch/_ops", "_contextlib", "torch/nn/modules/module.py", "run_case.py", "marked_case.py",
                 "transformers/utils/deprecation.py", "transformers/utils/generic.py")
NODE = re.compile(r"torch::autograd::(?:generated::)?(\w+)::apply\(")
OPERATOR = re.compile(r"at::_ops::(\w+)::")


def stack_root(stack):
    home = os.environ.get("QLORA_ORACLE") or os.path.join(os.path.expanduser("~"), ".cache", "qlora-oracle")
    return os.path.join(home, stack)


def is_set_up(stack):
    return os.path.exists(os.path.join(stack_root(stack), "lib", "libnullgpu.so"))


def run(shared, stack, case, prefix, native_frames=False):
    """Writes PREFIX.json (the oracle's answer), PREFIX.events.csv and PREFIX.inventory.json."""
    root = stack_root(stack)
    if not is_set_up(stack):
        raise RuntimeError(f"the oracle's stack {stack} is not set up: run oracle/setup {stack}")
    world = case.get("world", 1)
    environment = dict(os.environ, NULLGPU_DEVICES=str(min(world, 8)), LD_LIBRARY_PATH=root + "/lib",
                       LD_PRELOAD=root + "/lib/libnullgpu.so", TRITON_LIBCUDA_PATH=root + "/lib")
    with tempfile.TemporaryDirectory(prefix="oracle-run-") as scratch:
        environment["TMPDIR"] = scratch
        case_file, marks, snapshot, out = (os.path.join(scratch, n) for n in ("case.json", "marks.txt", "snap.pickle", "out.json"))
        with open(case_file, "w") as f:
            json.dump(dict(case, snapshot=snapshot, stacks="all" if native_frames else True), f)
        here = os.path.dirname(os.path.abspath(__file__))
        command = [root + "/venv/bin/python", os.path.join(here, "marked_case.py"), marks, os.path.join(shared, "oracle"), case_file, out]
        done = subprocess.run(command, env=environment, cwd=shared, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0 or not os.path.exists(out):
            raise RuntimeError("the oracle did not finish:\n" + done.stdout[-3000:])
        with open(out) as f:
            answer = json.load(f)
        with open(marks) as f:
            times = [int(line) for line in f]
        with open(snapshot, "rb") as f:
            trace = max(pickle.load(f)["device_traces"], key=len)
    answer["case"] = case
    events = named_events(trace, times, [p["phase"] for p in answer["phases"]])
    write_events(prefix + ".events.csv", events)
    with open(prefix + ".inventory.json", "w") as f:
        json.dump(inventory(events), f, indent=0)
    with open(prefix + ".json", "w") as f:
        json.dump(answer, f)
    return answer


def place(event):
    """(operator and autograd node, Python lines), as far as the frames tell."""
    node = op = ""
    lines = []
    for frame in event.get("frames", []):
        name, file = frame["name"], frame["filename"]
        if file.endswith(".py"):
            if len(lines) < 4 and not any(s in file for s in SKIPPED_FILES):
                lines.append("%s:%s:%s" % (file.split("site-packages/")[-1], frame["line"], name))
            continue
        if not op and (match := OPERATOR.match(name)):
            op = match[1]
        if not node and (match := NODE.match(name)):
            node = match[1]
    return " < ".join(x for x in (op, node) if x), " < ".join(lines)


def named_events(trace, times, phases):
    """Rows of COLUMNS; a free carries the name of what it frees, and where it happened in its last column `by`."""
    base = min((e["addr"] for e in trace if "addr" in e), default=0)
    streams, makers, rows = {}, {}, []
    names = ["start"] + phases
    at = 0
    for e in trace:
        if "addr" not in e:
            continue
        while at < len(times) and e.get("time_us", 0) > times[at]:
            at += 1
        phase = names[min(at, len(names) - 1)] if at < len(names) else "after"
        action = e["action"]
        stream = streams.setdefault(e.get("stream", 0), len(streams))
        here = place(e)
        maker = here
        if action == "alloc":
            makers[e["addr"]] = here
        elif action in ("free_requested", "free_completed"):
            maker = makers.get(e["addr"], ("?", "?"))
        rows.append([action, e.get("size", 0), stream, phase, maker[0], maker[1], e["addr"] - base,
                     "" if maker is here else " < ".join(x for x in here if x)])
    return rows


def write_events(path, rows):
    with open(path, "w", newline="") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(COLUMNS + ["by"])
        writer.writerows(rows)


def inventory(rows):
    """The blocks alive at the peak of requested bytes, in the order of their making."""
    live, total, peak, peak_at = {}, 0, -1, 0
    for index, row in enumerate(rows):
        if row[0] == "alloc":
            live[row[6]] = index
            total += row[1]
            if total > peak:
                peak, peak_at = total, index
        elif row[0] == "free_requested" and live.pop(row[6], None) is not None:
            total -= row[1]
    live = {}
    for index, row in enumerate(rows[: peak_at + 1]):
        if row[0] == "alloc":
            live[row[6]] = index
        elif row[0] == "free_requested":
            live.pop(row[6], None)
    blocks = [{"bytes": rows[i][1], "event": i, "phase": rows[i][3], "op": rows[i][4], "module": rows[i][5]} for i in sorted(live.values())]
    return {"peak": peak, "event": peak_at, "phase": rows[peak_at][3] if rows else "", "blocks": blocks}
