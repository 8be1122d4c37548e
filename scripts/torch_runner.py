#!/usr/bin/env python3
"""Runs the training program of a job: transformers with PEFT, bitsandbytes, accelerate, FSDP, DeepSpeed or TRL.

    qlora-plan export job.yaml --plan fsdp2 --to runner -o job.json
    qlora-plan sparse-weights job.yaml weights              or a checkpoint of your own
    torchrun --nproc-per-node 8 scripts/torch_runner.py job.json --checkpoint weights --out figures.json

One process is one rank; the launcher's variables (RANK, WORLD_SIZE, LOCAL_RANK) say which. Runs on real GPUs, and under
`qlora-plan trace` on the null GPU, alike. Every option of the job is honoured or refused with a message. Rank 0 writes
what PyTorch's allocator counted, phase by phase, to --out.

Exit status: 0 it ran, 1 out of memory, 2 the job asks for what this program does not do, 3 it failed otherwise.
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from torch_runner_lib import environment  # noqa: E402
from torch_runner_lib.section import Refused, Section  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description="Runs the training program of a job.")
    parser.add_argument("job", help="the JSON that qlora-plan export --to runner writes")
    parser.add_argument("--checkpoint", required=True, metavar="DIR", help="the weights, for from_pretrained")
    parser.add_argument("--out", metavar="FILE", help="figures of every phase, as JSON")
    parser.add_argument("--snapshot", metavar="FILE", help="PyTorch's memory snapshot of the whole run")
    parser.add_argument("--any-stack", action="store_true", help="run with other versions than the job's, too")
    return parser.parse_args()


def main():
    asked = arguments()
    try:
        with open(asked.job, encoding="utf-8") as file:
            job = Section("", json.load(file))
        environment.prepare(job)  # before torch is imported
        from torch_runner_lib import program

        program.run(job, asked)
    except (OSError, ValueError) as error:
        if isinstance(error, Refused) or isinstance(error, (OSError, json.JSONDecodeError)):
            sys.exit(refuse(error))
        raise


def refuse(error):
    print(f"torch_runner: {error}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
