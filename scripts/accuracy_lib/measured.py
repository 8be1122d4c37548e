"""Rows of measured.csv as jobs, as facts/measured.md says they are to be read."""
import os
import re

from .jobs import Job, Unexpressed

LLAMA_70B = dict(hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64, num_key_value_heads=8)
# name in the file -> (file in corpus/models, or a name of the program's own, and what differs from it)
MODELS = {
    "mistralai/Mistral-7B-v0.1": ("mistral-7b-v0.3.json", dict(vocab_size=32000, sliding_window=4096, rope_theta=10000.0)),
    "mistral-community/Mistral-7B-v0.2": ("mistral-7b-v0.3.json", dict(vocab_size=32000)),
    "meta-llama/Llama-2-7b-hf": ("llama-2-7b.json", {}),
    "meta-llama/Meta-Llama-3-8B": ("llama-3.1-8b.json", dict(max_position_embeddings=8192, rope_scaling=None)),
    "meta-llama/Llama-3.1-8B": ("llama-3.1-8b.json", {}),
    "meta-llama/Meta-Llama-3.1-8B-Instruct": ("llama-3.1-8b.json", {}),
    "meta-llama/Meta-Llama-3.1-70B-Instruct": ("llama-3.1-8b.json", LLAMA_70B),
    "meta-llama/Meta-Llama-3.1-405B-Instruct": ("llama-3.1-405b.json", {}),
    "meta-llama/Llama-3.2-1B": ("llama-3.2-1b.json", {}),
    "meta-llama/Llama-3.2-3B": ("llama-3.2-3b.json", {}),
    "meta-llama/Llama-3.2-3B-Instruct": ("llama-3.2-3b.json", {}),
    "google/gemma-2-2b": ("gemma-2-2b.json", {}),
    "ibm/PowerLM-3b": ("powerlm-3b", {}),
    "bigcode/gpt_bigcode-santacoder": ("santacoder-1b.json", {}),
}
# The program of the fms rows gives the model as many embeddings as its tokenizer has tokens, once that has a token for
# padding (fms-hf-tuning 2.5.0, tuning/utils/tokenizer_data_utils.py and sft_trainer.py): 32000 + 1; 49157 + 1, of 49280.
FMS_TOKENS = {"mistralai/Mistral-7B-v0.1": 32001, "bigcode/gpt_bigcode-santacoder": 49158}
GPUS = {"A100-80GB": "A100 SXM4 80GB", "A100-40GB": "A100 SXM4 40GB"}
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp32 shard": "bfloat16", "uint8": "uint8"}
PLANS = {"single": "single", "ddp": "ddp", "fsdp1-full": "fsdp1-full-shard", "fsdp2": "fsdp2"}
LIBRARIES = ("transformers", "peft", "accelerate", "bitsandbytes")
METRICS = (("peak allocated", "peak_allocated"), ("peak reserved", "peak_reserved"), ("peak active", "peak_active"))
UNITS = {"B": 1, "GiB": 2**30, "MiB": 2**20}
# Rows of this publication do not state the dropout; the peaks show it (facts/measured.md).
FMS_DROPOUT = 0.1


def notes_of(row):
    return [n.strip() for n in row["notes"].split(";")]


def measured_values(row):
    """[(metric, bytes)]; raises Unexpressed for a metric or unit that is not understood."""
    metric = next((m for text, m in METRICS if row["metric_kind"].startswith(text)), None)
    if metric is None:
        raise Unexpressed(f"metric: {row['metric_kind']}")
    scale = UNITS.get(row["unit"], 10**9 if row["unit"].startswith("GB") else None)
    if scale is None:
        raise Unexpressed(f"unit: {row['unit']}")
    values = [(metric, round(float(row["value"]) * scale))]
    for note in notes_of(row):
        if match := re.fullmatch(r"alloc_after_train=(\d+)B", note):
            values.append(("end_allocated", int(match[1])))
    return values


def versions_of(row):
    versions = {"torch": row["torch_version"].split("+")[0]}
    for library in LIBRARIES:
        if match := re.search(rf"\b{library} (\d+(?:\.\d+)+)", row["stack"]):
            versions[library] = match[1]
    missing = [k for k in ("torch", "transformers") if not re.match(r"\d+\.\d", versions.get(k, ""))]
    if missing:
        raise Unexpressed("version not stated: " + ", ".join(missing))
    return versions


def from_row(row, shared):
    """The Job of a row; raises Unexpressed with the first reason found."""
    notes = notes_of(row)
    fms = row["id"].startswith("fms")
    reject_other_programs(row, notes, fms)
    if row["model"] not in MODELS:
        raise Unexpressed(f"no config of {row['model']} at hand")
    file, overrides = MODELS[row["model"]]
    if fms and row["model"] in FMS_TOKENS:
        overrides = overrides | {"vocab_size": FMS_TOKENS[row["model"]]}
    source = {"config": os.path.abspath(os.path.join(shared, "corpus", "models", file))} if file.endswith(".json") else {"name": file}
    sections = {"model": {**source, **({"overrides": overrides} if overrides else {}), "dtype": field(DTYPES, row, "param_dtype")}}
    # TRL leaves it out where the weights are not on the GPU yet (sft_trainer.py, is_sharded_qlora).
    kbit = any(n.startswith("prepare_model_for_kbit_training") and "no lasting upcast" not in n for n in notes)
    if row["quant"] != "none":
        sections["quantization"] = dict(
            quant_type=row["quant"].split("+")[0], double_quant=row["quant"].endswith("+dq"),
            quant_storage=field(DTYPES, row, "quant_storage"), compute_dtype=field(DTYPES, row, "compute_dtype"), prepare_kbit=kbit,
            trl_bf16_cast=kbit and fms and "bf16 flag on" in notes)
    if row["method"] != "full":
        sections["adapter"] = adapter_section(row, fms)
    sections["training"] = training_section(row, notes)
    gpus = number(row, "n_gpus")
    sections["cluster"] = dict(gpu=field(GPUS, row, "gpu_type"), world_size=gpus, gpus_per_node=min(gpus, 8))
    plan = field(PLANS, row, "sharding")
    if plan == "single":
        sections["model"]["loading"] = "gpu"
    sections["plans"] = [plan]
    sections["stack"] = versions_of(row)
    return Job(sections, plan)


def reject_other_programs(row, notes, fms):
    """What is not transformers' Trainer with PEFT, or lacks a figure that a predictor needs."""
    framework = next((n.split("=", 1)[1] for n in notes if n.startswith("framework_config=")), "none")
    if row["quant"].startswith("gptq"):
        raise Unexpressed("GPTQ base")
    if "foak" in framework or "foak" in row["loss_impl"]:
        raise Unexpressed("fused LoRA, norm and loss kernels (foak)")
    if row["stack"].startswith(("litgpt", "lit-gpt", "torchtune", "torchtitan")):
        raise Unexpressed(f"{row['stack'].split()[0]}: another implementation of model and step")
    if row["quant"] not in ("none", "nf4", "nf4+dq", "fp4", "fp4+dq"):
        raise Unexpressed(f"quantization {row['quant']}")
    if row["method"] not in ("full", "lora", "qlora"):
        raise Unexpressed(f"method {row['method']}")
    if row["loss_impl"] != "plain":
        raise Unexpressed(f"loss: {row['loss_impl']}")
    if row["offload"] != "no":
        raise Unexpressed(f"offload: {row['offload']}")
    if not fms and not row["seq_len"].isdigit():
        raise Unexpressed(f"true sequence length not stated ({row['seq_len']})")


def adapter_section(row, fms):
    targets = row["lora_targets"]
    if targets in ("?", "-"):
        raise Unexpressed("LoRA targets not stated")
    section = dict(type="lora", r=int(float(row["lora_r"])),
                   target_modules="all-linear" if targets.startswith("all linear") else targets.split())
    if fms:
        section["lora_dropout"] = FMS_DROPOUT
    if row["lora_dtype"].startswith("fp16"):
        section["autocast_adapter_dtype"] = False
    elif row["lora_dtype"] == "bf16":
        section["dtype"] = "bfloat16"
    elif row["lora_dtype"] != "fp32":
        raise Unexpressed(f"LoRA weights in {row['lora_dtype']}")
    return section


def training_section(row, notes):
    checkpointing = row["grad_ckpt"]
    if checkpointing not in ("yes (reentrant)", "yes (non-reentrant)", "no"):
        raise Unexpressed(f"gradient checkpointing: {checkpointing} (which variant is not stated)")
    attention = {"flash-attn 2": "flash_attention_2", "sdpa (HF default)": "sdpa", "sdpa": "sdpa", "sdpa (flash)": "sdpa"}
    optimizer = {"adamw_torch (foreach)": "adamw_torch", "adamw_torch": "adamw_torch", "adamw_torch_fused": "adamw_torch_fused"}
    flag = next((n.split()[0] for n in notes if n.endswith("flag on")), "no" if "no amp flag" in notes else None)
    if flag is None:
        raise Unexpressed("mixed precision not stated")
    clip = next((float(n.split()[1]) for n in notes if re.fullmatch(r"clip [\d.]+", n)), None)
    if clip is None:
        raise Unexpressed("gradient clipping not stated")
    return dict(
        micro_batch_size=number(row, "micro_batch"), seq_len=number(row, "seq_len"), gradient_accumulation_steps=number(row, "grad_accum"),
        gradient_checkpointing=False if checkpointing == "no" else {"use_reentrant": checkpointing == "yes (reentrant)"},
        mixed_precision=flag, optimizer=field(optimizer, row, "optimizer"), max_grad_norm=clip,
        attn_implementation=field(attention, row, "attention_impl"), loss="plain")


def field(table, row, name):
    if row[name] not in table:
        raise Unexpressed(f"{name}: {row[name]}")
    return table[row[name]]


def number(row, name):
    if not row[name].isdigit():
        raise Unexpressed(f"{name}: {row[name]}")
    return int(row[name])
