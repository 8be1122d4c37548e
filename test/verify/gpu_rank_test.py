#!/usr/bin/env python3
"""Ranks on the null GPU: our CUDA and NCCL code to the letter, on books instead of a GPU.

Every plan allocates and reserves what the dry run says, to the byte, and gives all of it back; what fails ends the run
with the exit status that was promised. A build without device code says so.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(os.environ["QLORA_PLAN"]).resolve()
LIBRARY = PROGRAM.parent.parent / "lib/qlora-plan/libqlora_cuda.so"
RUNS = [
    ("configs/tiny-qlora.yaml", 1, "single"),
    ("configs/llama-3.1-8b-qlora.yaml", 1, "single"),
    ("configs/tiny-full.yaml", 2, "ddp"),
    ("configs/tiny-full.yaml", 2, "zero1"),
    ("configs/tiny-full.yaml", 4, "zero2"),
    ("configs/tiny-full.yaml", 4, "fsdp1-full-shard"),
    ("configs/tiny-full.yaml", 4, "fsdp1-hybrid-shard"),
    ("configs/tiny-full.yaml", 8, "fsdp2"),
]
EXPERTS = "  num_experts: 8\n  num_experts_per_tok: 2\n  moe_intermediate_size: 48\n"
VARIANTS = [  # replacements in configs/tiny-full.yaml, ranks, plan
    ([("family: qwen3", "family: qwen3_moe"), ("  head_dim: 16\n", "  head_dim: 16\n" + EXPERTS)], 2, "fsdp2"),
    ([("training:\n", "adapter: {type: lora, r: 8}\nquantization: {quant_type: int8}\ntraining:\n")], 2, "ddp"),
    ([("  world_size: 2", "  world_size: 4\n  mesh: {tp: 2}")], 2, "single"),
    ([("  world_size: 2", "  world_size: 4\n  mesh: {tp: 2}")], 4, "fsdp2"),
    ([("  world_size: 2", "  world_size: 4\n  mesh: {cp: 2}")], 4, "fsdp2"),
    ([("  world_size: 2", "  world_size: 4\n  mesh: {pp: 2}"), ("embeddings: true", "embeddings: false")], 2, "single"),
    ([("  world_size: 2", "  world_size: 2\nplans:\n  fsdp2: {cpu_offload: true}")], 2, "fsdp2"),
    ([("family: qwen3", "family: qwen3_moe"), ("  head_dim: 16\n", "  head_dim: 16\n" + EXPERTS)]
     + [("  world_size: 2", "  world_size: 4\n  mesh: {ep: 2}")], 4, "fsdp2"),
    ([("family: qwen3", "family: qwen3_moe"), ("  head_dim: 16\n", "  head_dim: 16\n" + EXPERTS)]
     + [("training:\n", "stack: {transformers: 4.57.1}\ntraining:\n")], 2, "ddp"),
    ([("mixed_precision: bf16", "mixed_precision: fp16"), ("use_reentrant: false", "use_reentrant: true")], 2, "zero3"),
]
OPTIMIZERS = ["paged_ademamix_8bit", "lion_8bit", "rmsprop_bnb", "stable_adamw", "adamw_torch_4bit"]
FAILURES = [  # environment, exit status, what the report says
    ({"NULLGPU_FAIL": "cudaMalloc:4+"}, 1, "out_of_memory"),
    ({"NULLGPU_BYTES": "20000000"}, 1, "out_of_memory"),
    ({"NULLGPU_FAIL": "ncclCommInitRankConfig:1"}, 3, "communicator_failed"),
    ({"NULLGPU_FAIL": "ncclReduceScatter:2"}, 3, "communicator_failed"),
    ({"NULLGPU_FAIL": "ncclCommGetAsyncError:2"}, 3, "communicator_failed"),
    ({"NULLGPU_FAIL": "ncclCommFinalize:1"}, 3, "communicator_failed"),
    ({"NULLGPU_FAIL": "cublasLtMatmul:5=14"}, 3, "device_failed"),  # CUBLAS_STATUS_INTERNAL_ERROR
    ({"NULLGPU_FAIL": "cudaStreamCreateWithFlags:2=999"}, 3, "device_failed"),  # cudaErrorUnknown
    ({"NULLGPU_FAIL": "cudaStreamCreateWithFlags:2=2"}, 1, "out_of_memory"),  # cudaErrorMemoryAllocation
]


def verify(job, gpus, plan, environment):
    command = [PROGRAM, "verify", job, "--device", "null", "--gpus", str(gpus), "--plan", plan]
    command += ["--json", "--timeout", "120"]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=300)


def check_run(job, gpus, plan):
    with tempfile.TemporaryDirectory() as folder:
        run = verify(job, gpus, plan, {"NULLGPU_REPORT": folder + "/%p.json"})
        if run.returncode != 0:
            yield f"exit status {run.returncode}: {run.stderr}"
            return
        ranks = json.loads(run.stdout)["verification"]["ranks"]
        if len(ranks) != gpus:
            yield f"{len(ranks)} ranks"
        judged = 0
        for rank in ranks:
            for figure in rank["figures"]:
                if figure["name"] not in ("allocated", "reserved"):
                    continue
                judged += 1
                if figure["measured_bytes"] != figure["predicted_bytes"]:
                    yield f"rank {rank['rank']}: {figure}"
        if judged < 10 * gpus:
            yield f"only {judged} figures"
        books = [json.loads(path.read_text()) for path in Path(folder).iterdir()]
        used = [book for book in books if book["launches"] > 0]
        if len(used) != gpus:
            yield f"{len(used)} processes used a GPU"
        for book in used:
            device = book["devices"][0]
            if device["used_bytes"] != 0 or device["mallocs"] != device["frees"]:
                yield f"memory that was not given back: {device}"
            if gpus > 1 and sum(c["collectives"] for c in book["communicators"]) < 4:
                yield f"hardly a collective: {book['communicators']}"
            if book["unimplemented"]:
                yield f"not on the null GPU: {book['unimplemented']}"


def check_variant(replacements, gpus, plan):
    text = Path("configs/tiny-full.yaml").read_text()
    for old, new in replacements:
        if old not in text:
            yield f"{old!r} is not in the job"
        text = text.replace(old, new)
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.yaml"
        job.write_text(text)
        yield from check_run(job, gpus, plan)


def check_optimizer(name):
    large = ("vocab_size: 512", "vocab_size: 2048")  # from 100,000 elements on states are paged
    whole = ("  dtype: bfloat16", "  dtype: float32")  # bitsandbytes' RMSprop has nothing for other gradients
    yield from check_variant([large, whole, ("bf16\n", f"bf16\n  optimizer: {name}\n")], 1, "single")


def check_failure(environment, status, end):
    run = verify("configs/tiny-full.yaml", 2, "fsdp2", environment)
    if run.returncode != status:
        yield f"exit status {run.returncode}: {run.stderr}"
    elif end not in [rank["end"] for rank in json.loads(run.stdout)["verification"]["ranks"]]:
        yield f"no rank is {end}: {run.stdout[-2000:]}"


def main():
    if not LIBRARY.exists():
        run = verify("configs/tiny-full.yaml", 2, "fsdp2", {})
        if run.returncode == 3 and "no device code" in run.stderr:
            return 0
        print(f"without device code: exit status {run.returncode}: {run.stderr}")
        return 1
    findings = [f"{run}: {text}" for run in RUNS for text in check_run(*run)]
    findings += [f"{variant}: {text}" for variant in VARIANTS for text in check_variant(*variant)]
    findings += [f"{name}: {text}" for name in OPTIMIZERS for text in check_optimizer(name)]
    findings += [f"{failure}: {text}" for failure in FAILURES for text in check_failure(*failure)]
    print("\n".join(findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
