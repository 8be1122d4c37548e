#!/usr/bin/env python3
"""Stands in for qlora-plan in the tests of the scripts: answers `estimate` with figures made from the job file."""
import json
import sys

if "--version" in sys.argv:
    print("qlora-plan 0.0.0")
    sys.exit(0)
with open(sys.argv[-1]) as f:
    job, section = {}, None
    for line in f:
        key, _, value = line.strip().partition(":")
        if line.startswith("  "):
            job[section][key] = json.loads(value)
        elif value.strip():
            job[key] = json.loads(value)
        else:
            section, job[key] = key, {}
seq = job["training"]["seq_len"]
if seq == 666:
    sys.exit(4)
if seq == 667:
    print("null")
    sys.exit(0)
if "tp" in job["plans"]:
    print("error: plans: no plan is called 'tp'", file=sys.stderr)
    sys.exit(2)
name = list(job["plans"])[0]
memory = int(job["cluster"].get("memory", "80000B")[:-1])
base = 1000 * seq
figures = {"requested_bytes": base, "allocated_bytes": base + 10, "active_bytes": base + 20, "reserved_bytes": base + 30,
           "active": {"min": base + 20, "max": base + 25}, "reserved": {"min": base + 30, "max": base + 35}}
peak = dict(figures, device_used_bytes=base + 530)
if "--required" in sys.argv:
    peak["required_reserved_bytes"] = base + 15
plan = {"name": name, "applicable": name != "fsdp1-no-shard", "reason": "frozen parameters", "fits": base + 530 <= memory,
        "peak": peak, "training_peak": peak,
        "phases": [{"name": n, "peak": figures, "held": {k: v // 2 for k, v in figures.items() if isinstance(v, int)}}
                   for n in ("load", "micro1.forward", "end")]}
print(json.dumps({"plans": [plan]}))
sys.exit(0 if plan["fits"] else 1)
