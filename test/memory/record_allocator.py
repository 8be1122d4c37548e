"""Record what PyTorch's CUDA caching allocator does under random use, for recorded_use_test.cc.

Needs a CUDA device, or the null GPU. The options come from PYTORCH_CUDA_ALLOC_CONF, the capacity of the device and the
laziness of its events from the null GPU's settings; they are written into the file, so that the test can set up the
same. Lines: `set KEY VALUE`; `do ...` what was asked of the allocator, in order (allocate ID BYTES STREAM, fail BYTES
STREAM, free ID, record ID STREAM, synchronize, empty_cache); `reserve ADDRESS` the address spaces of expandable
segments, if a device that logs them was used; `event ACTION STREAM BYTES ADDRESS` the allocator's own history; `peak`
and `count` its figures at the end. Addresses are relative to the lowest.
"""
import argparse
import os
import random

import torch

parser = argparse.ArgumentParser()
parser.add_argument("out")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--ops", type=int, default=400)
parser.add_argument("--streams", type=int, default=3)
parser.add_argument("--fraction", type=float, help="set_per_process_memory_fraction")
parser.add_argument("--largest-mib", type=int, default=200)
parser.add_argument("--reserved", help="file in which the device logs its address space reservations")
args = parser.parse_args()

MIB = 1 << 20
rnd = random.Random(args.seed)
torch.cuda.init()
if args.fraction:
    torch.cuda.set_per_process_memory_fraction(args.fraction)
torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=10**7)
streams = [torch.cuda.default_stream()] + [torch.cuda.Stream() for _ in range(args.streams - 1)]
numbers = {stream.cuda_stream: i for i, stream in enumerate(streams)}


def some_size():
    kind = rnd.random()
    if kind < 0.35:
        return rnd.randint(1, 4096)
    if kind < 0.55:
        return rnd.choice([512, 1024, 65536, 262144, MIB, 3 * MIB, 12 * MIB])
    if kind < 0.7:
        return rnd.randint(1, MIB + 1000)
    if kind < 0.9:
        return rnd.randint(MIB, 30 * MIB)
    return rnd.randint(20 * MIB, args.largest_mib * MIB)


done, live, made = [], {}, 0
target = rnd.randint(30, 150)  # tensors alive
for _ in range(args.ops):
    if rnd.random() < 0.01:
        target = rnd.randint(5, 150)
    kind = rnd.random()
    if kind < 0.004:
        torch.cuda.synchronize()
        done.append("synchronize")
    elif kind < 0.008:
        torch.cuda.empty_cache()
        done.append("empty_cache")
    elif kind < 0.05 and live and args.streams > 1:
        tensor, stream = rnd.choice(list(live)), rnd.randrange(args.streams)
        live[tensor].record_stream(streams[stream])
        done.append(f"record {tensor} {stream}")
    elif not live or rnd.random() < (0.6 if len(live) < target else 0.4):
        size, stream = some_size(), 0 if rnd.random() < 0.7 else rnd.randrange(args.streams)
        try:
            with torch.cuda.stream(streams[stream]):
                live[made] = torch.empty(size, dtype=torch.uint8, device="cuda")
            done.append(f"allocate {made} {size} {stream}")
            made += 1
        except torch.OutOfMemoryError:
            done.append(f"fail {size} {stream}")
            for tensor in rnd.sample(list(live), len(live) // 2):
                del live[tensor]
                done.append(f"free {tensor}")
    else:
        tensor = rnd.choice(list(live))
        del live[tensor]
        done.append(f"free {tensor}")

history = [e for e in torch.cuda.memory._snapshot()["device_traces"][0] if e["action"] != "snapshot"]
stats = torch.cuda.memory_stats()
base = min(e["addr"] for e in history if e.get("addr"))
with open(args.out, "w") as f:
    f.write(f"set torch {torch.__version__.split('+')[0]}\n")
    f.write(f"set options {os.environ.get('PYTORCH_CUDA_ALLOC_CONF', '')}\n")
    f.write(f"set capacity {torch.cuda.mem_get_info()[1]}\n")
    f.write(f"set lazy {os.environ.get('NULLGPU_LAZY_EVENTS', '0')}\n")
    if args.fraction:
        f.write(f"set fraction {args.fraction}\n")
    for line in done:
        f.write(f"do {line}\n")
    if args.reserved and os.path.exists(args.reserved):
        for line in open(args.reserved):
            f.write(f"reserve {int(line) - base}\n")
    for e in history:
        if e["action"] == "oom":
            f.write("event oom 0 0 0\n")
        else:
            f.write(f"event {e['action']} {numbers[e['stream']]} {e['size']} {e['addr'] - base}\n")
    for figure in ("requested", "allocated", "active", "reserved"):
        of = stats[f"{figure}_bytes.all.current"], stats[f"{figure}_bytes.all.peak"]
        f.write(f"peak {figure} {of[0]} {of[1]}\n")
    f.write(f"count {stats['num_alloc_retries']} {stats['num_ooms']}\n")
print(args.out, len(done), "done,", len(history), "events,", stats["num_alloc_retries"], "retries,", stats["num_ooms"], "ooms,",
      sum(e["action"] in ("segment_free", "segment_unmap") for e in history), "given back")
