"""Jobs for qlora-plan, and the cases of the oracle (oracle/run_case.py) as such jobs.

The defaults of a case are run_case.py's. A key that this module does not know makes the case unexpressed: better named
than wrong.
"""
import json
import os
import re

from . import deepspeed

STACKS = {
    "2025-01": dict(torch="2.4.1", transformers="4.48.1", peft="0.13.2", accelerate="1.0.1", bitsandbytes="0.43.3"),
    "2025-10": dict(torch="2.8.0", transformers="4.57.1", peft="0.18.0", accelerate="1.15.0", bitsandbytes="0.50.2"),
    "2026-11": dict(torch="2.14.1", transformers="5.24.0", peft="0.21.2", accelerate="1.15.0", bitsandbytes="0.50.2"),
}
DEVICE_BYTES = 84_974_239_744  # the null GPU's size where the case does not set NULLGPU_BYTES
GPUS = {"80": "A100 SXM4 80GB", "90": "H100 SXM5 80GB"}  # by NULLGPU_SM

DEFAULTS = dict(
    id=None, config=None, overrides={}, world=1, rank=0, plan="single", dtype="bfloat16", quant=None, dq=True, storage="uint8",
    kbit=False, adapter=None, autocast_adapter=True, bf16=False, fp16=False, mb=1, seq=512, ga=1, ckpt="none", optim="adamw_torch",
    attn="sdpa", clip=1.0, steps=3, loader="cuda", layer=None, liger=False, use_orig=True, offload=False, env={}, ds=None,
    snapshot=None, stacks=False, alloc_env={}, optim_target_modules=None, optim_args=None)
ADAPTER_KEYS = {"r", "lora_alpha", "lora_dropout", "use_dora", "use_rslora", "target_modules", "exclude_modules", "layers_to_transform",
                "layers_pattern", "target_parameters", "modules_to_save", "trainable_token_indices", "rank_pattern", "alpha_pattern", "bias",
                "lora_bias", "dtype"}
ADAPTER_NEUTRAL = {"fan_in_fan_out": (False,), "init_lora_weights": (True, False, "gaussian"), "inference_mode": (False,),
                   "task_type": ("CAUSAL_LM",)}
CHECKPOINTING = {"none": False, "reentrant": {"use_reentrant": True}, "nonreentrant": {"use_reentrant": False}}
PLANS = {"single", "ddp", "fsdp1-full-shard", "fsdp1-shard-grad-op", "fsdp1-no-shard", "fsdp1-hybrid-shard",
         "fsdp1-hybrid-shard-zero2", "fsdp2", "fsdp2-no-reshard", "zero1", "zero2", "zero3"}
# Options of FSDP1 by the launcher's variables.
FSDP1_VARIABLES = {
    "FSDP_BACKWARD_PREFETCH": ("backward_prefetch", str.lower),
    "FSDP_FORWARD_PREFETCH": ("forward_prefetch", lambda value: value.lower() == "true"),
    "FSDP_AUTO_WRAP_POLICY": ("auto_wrap_policy", str.lower),
    "FSDP_MIN_NUM_PARAMS": ("min_num_params", int),
}
# How weights are read and layers repeated, which the job says elsewhere.
RAM_EFFICIENT, SYNC_STATES = "FSDP_CPU_RAM_EFFICIENT_LOADING", "FSDP_SYNC_MODULE_STATES"
REPEATS_LAYERS = "FSDP_ACTIVATION_CHECKPOINTING"
WRAP_VARIABLES = ("FSDP_AUTO_WRAP_POLICY", "FSDP_MIN_NUM_PARAMS")
# What the job says elsewhere, or what changes no memory of the steps.
LAUNCH_VARIABLES = {"ACCELERATE_MIXED_PRECISION", "FSDP_STATE_DICT_TYPE"}
MESH_VARIABLES = ("ACCELERATE_USE_PARALLELISM_CONFIG", "PARALLELISM_CONFIG_DP_REPLICATE_SIZE", "PARALLELISM_CONFIG_DP_SHARD_SIZE")
FSDP1_ALONE = ("FSDP_BACKWARD_PREFETCH", "FSDP_FORWARD_PREFETCH")  # accelerate has no use for them under FSDP2
FSDP2_VARIABLES = {"FSDP_AUTO_WRAP_POLICY": FSDP1_VARIABLES["FSDP_AUTO_WRAP_POLICY"]} | dict.fromkeys(MESH_VARIABLES + FSDP1_ALONE)
SIZE_OF_FSDP2 = {"FSDP_AUTO_WRAP_POLICY": "SIZE_BASED_WRAP"}  # refused; the number does not matter


class Unexpressed(Exception):
    """Why a case is no job."""


class Job:
    """sections: the job file; scope: why the job is outside of what the tool promises so far, or None."""

    def __init__(self, sections, plan, rank=0, limit=None, lazy=False, scope=None):
        self.sections, self.plan, self.rank, self.limit, self.lazy, self.scope = sections, plan, rank, limit, lazy, scope

    def yaml(self, memory=None):
        sections = dict(self.sections)
        if memory is not None:
            sections["cluster"] = dict(sections["cluster"], memory=f"{memory}B")
        lines = ["schema: 1"]
        for name, value in sections.items():
            if isinstance(value, dict):
                lines.append(f"{name}:")
                lines += [f"  {k}: {json.dumps(v)}" for k, v in value.items()]
            else:
                lines.append(f"{name}: {json.dumps(value)}")
        return "\n".join(lines) + "\n"


def at_least(version, *wanted):
    return tuple(int(x) for x in re.findall(r"\d+", version)[:len(wanted)]) >= wanted


def method_of(case):
    if not case.get("adapter"):
        return "full"
    return "qlora" if case.get("quant") else "lora"


def out_of_scope(c):
    """What comes in later versions of the tool."""
    if c["plan"] not in PLANS:
        return f"plan {c['plan']}"
    return None


def from_case(case, versions, shared):
    """The Job of an oracle case under these library versions; raises Unexpressed."""
    unknown = sorted(set(case) - set(DEFAULTS))
    if unknown:
        raise Unexpressed("unknown keys of the case: " + ", ".join(unknown))
    c = dict(DEFAULTS, **case)
    if not c["config"]:
        raise Unexpressed("the case names no config")
    known = FSDP1_VARIABLES if c["plan"].startswith("fsdp1") else FSDP2_VARIABLES if c["plan"].startswith("fsdp2") else {}
    if c["plan"].startswith("fsdp2") and SIZE_OF_FSDP2.items() <= c["env"].items():
        c["env"] = without(c["env"], "FSDP_MIN_NUM_PARAMS")
    c["bf16"], c["fp16"] = mixed_precision(c)
    loading = "rank0" if reads_on_rank0(c) else "gpu" if c["loader"] == "cuda" else "cpu"
    take_checkpointing(c, versions)
    strange = [f"{k}={v}" for k, v in sorted(c["env"].items()) if k not in known and k not in LAUNCH_VARIABLES]
    if strange:
        raise Unexpressed("launcher variables: " + ", ".join(strange))
    config = os.path.join(shared, c["config"])
    if c["layer"] and is_decoder_layer(config, c["layer"]):
        c["layer"] = None
    memory_env, allocator = dict(c["alloc_env"]), None
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        allocator = memory_env.pop(name, None) or allocator
    sm, lazy = str(memory_env.pop("NULLGPU_SM", "80")), str(memory_env.pop("NULLGPU_LAZY_EVENTS", "0")) == "1"
    limit = int(memory_env.pop("NULLGPU_BYTES", DEVICE_BYTES)) - int(memory_env.pop("NULLGPU_CONTEXT_BYTES", 0))
    if memory_env:
        raise Unexpressed("environment: " + ", ".join(sorted(memory_env)))
    if sm not in GPUS:
        raise Unexpressed(f"compute capability {sm}")

    # oracle/sparse_checkpoint.py writes every checkpoint in bfloat16, whatever the description says
    model = {"config": os.path.abspath(config), "overrides": c["overrides"] | {"torch_dtype": "bfloat16"}}
    model.update(dtype=c["dtype"], loading=loading)
    if at_least(versions.get("transformers", "0"), 5) and has_experts(config):
        model["stacked_experts"] = True  # as oracle/sparse_checkpoint.py writes what transformers holds
    sections = {"model": model}
    if c["quant"] == "int8":
        sections["quantization"] = dict(quant_type="int8", prepare_kbit=bool(c["kbit"]))
    elif c["quant"]:
        sections["quantization"] = dict(quant_type=c["quant"], double_quant=bool(c["dq"]), quant_storage=c["storage"],
                                        compute_dtype=c["dtype"], prepare_kbit=bool(c["kbit"]))
    elif c["kbit"]:
        raise Unexpressed("prepare_model_for_kbit_training without quantization")
    if c["adapter"]:
        sections["adapter"] = adapter_section(c["adapter"], c["autocast_adapter"])
    sections["training"] = dict(
        micro_batch_size=c["mb"], seq_len=c["seq"], gradient_accumulation_steps=c["ga"],
        gradient_checkpointing=CHECKPOINTING[c["ckpt"]], mixed_precision="bf16" if c["bf16"] else "fp16" if c["fp16"] else "no", optimizer=c["optim"],
        max_grad_norm=c["clip"], attn_implementation=c["attn"], loss="liger" if c["liger"] else "plain", num_steps=c["steps"])
    sections["training"] |= {key: c[key] for key in ("optim_target_modules", "optim_args") if c[key] is not None}
    sections["cluster"] = dict(gpu=GPUS[sm], world_size=c["world"], gpus_per_node=min(8, c["world"]), memory=f"{limit}B", margin="0%")
    if allocator:
        sections["allocator"] = allocator
    name, options = plan_of(c, versions)
    sections["plans"] = {name: options} if options else [name]
    sections["stack"] = {k: v for k, v in versions.items() if k in STACKS["2025-10"]}
    return Job(sections, name, rank=c["rank"], limit=limit, lazy=lazy, scope=out_of_scope(c))


def adapter_section(adapter, autocast):
    strange = sorted(k for k, v in adapter.items() if k not in ADAPTER_KEYS and v not in ADAPTER_NEUTRAL.get(k, ()))
    if strange:
        raise Unexpressed("arguments of LoraConfig: " + ", ".join(strange))
    section = {"type": "lora"}
    section.update((k, v) for k, v in adapter.items() if k in ADAPTER_KEYS)
    if not autocast:
        section["autocast_adapter_dtype"] = False
    return section


def plan_of(c, versions):
    """(our plan, its options) of a case: with several ranks the Trainer makes `single` a DDP run, with one no DDP wraps."""
    plan, options = c["plan"], {}
    if plan.startswith("zero"):
        return deepspeed.plan_of(c, Unexpressed)
    alone = plan.startswith("fsdp") and c["world"] == 1  # without a group, with which accelerate begins FSDP
    if plan in ("single", "ddp") or alone:
        return ("ddp" if c["world"] > 1 else "single"), options
    local = c["quant"] in ("nf4", "fp4") and c["storage"] in ("uint8", "int8") and at_least(versions["accelerate"], 1, 14)
    if local and plan in ("fsdp2", "fsdp2-no-reshard"):
        # accelerate >= 1.14 hands such a base to fully_shard as ignored_params
        options = {"reshard_after_forward": False} if plan == "fsdp2-no-reshard" else {}
        plan = "fsdp2-local-base"
    if plan.startswith("fsdp1") and not c["use_orig"]:
        options["use_orig_params"] = False
    plan = mesh_plan(c["env"], plan, options)
    for name, value in sorted(c["env"].items()):
        if plan.startswith("fsdp1") and c["adapter"] and name in WRAP_VARIABLES:
            continue  # the Trainer puts PEFT's policy in its place
        if plan.startswith("fsdp2") and name in FSDP1_ALONE:
            continue
        if name not in MESH_VARIABLES and name not in LAUNCH_VARIABLES:
            key, read = FSDP1_VARIABLES[name]
            options[key] = read(str(value))
    if c["layer"] and c["plan"].startswith("fsdp"):
        options["transformer_cls_names_to_wrap"] = c["layer"].split(",")
    if c["offload"]:
        options["cpu_offload"] = True
    return plan, options


def mesh_plan(env, plan, options):
    """The fsdp2 plan on the mesh of accelerate's ParallelismConfig; its options are added."""
    if env.get("ACCELERATE_USE_PARALLELISM_CONFIG") != "true" or env.get("PARALLELISM_CONFIG_DP_REPLICATE_SIZE", "1") == "1":
        return plan
    options["dp_shard_size"] = int(env["PARALLELISM_CONFIG_DP_SHARD_SIZE"])
    if plan == "fsdp2-no-reshard":
        options["reshard_after_forward"] = False
    if plan == "fsdp2-local-base":
        options["ignored_params"] = "quantized"
    return "fsdp2-hsdp"


def mixed_precision(c):
    """(bf16, fp16): the launcher's word counts where the Trainer has no flag of its own."""
    word = c["env"].get("ACCELERATE_MIXED_PRECISION") if c["plan"].startswith("fsdp") else None
    if c["bf16"] or c["fp16"] or word is None:
        return c["bf16"], c["fp16"]
    if word not in ("no", "bf16", "fp16"):
        raise Unexpressed(f"ACCELERATE_MIXED_PRECISION={word}")
    return word == "bf16", word == "fp16"


def is_true(c, name):
    """A launcher's variable of a case."""
    return c["plan"].startswith("fsdp") and str(c["env"].get(name, "false")).lower() == "true"


def without(env, *names):
    return {k: v for k, v in env.items() if k not in names}


def reads_on_rank0(c):
    """RAM-efficient loading, whose variables leave the case. run_case.py sets them once the model is loaded, so the first
    rank does what it would; what is on GPUs by then nobody would have loaded so."""
    asked = is_true(c, RAM_EFFICIENT)
    if asked and (c["loader"] == "cuda" or c["quant"]):
        raise Unexpressed("RAM-efficient loading of a model that is on GPUs")
    if asked and c["plan"].startswith("fsdp1") and not is_true(c, SYNC_STATES):
        raise Unexpressed("RAM-efficient loading without FSDP_SYNC_MODULE_STATES")
    if RAM_EFFICIENT in c["env"]:
        c["env"] = without(c["env"], RAM_EFFICIENT, SYNC_STATES)
    return asked


def take_checkpointing(c, versions):
    """FSDP's own checkpointing, which is that without reentrance. What stops at it is not a matter of training.*:
    transformers 4 lets the cache grow, and adapters in float32 are repeated in 16 bits."""
    if is_true(c, REPEATS_LAYERS):
        if c["ckpt"] != "none" or c["adapter"] or not at_least(versions.get("transformers", "0"), 5):
            raise Unexpressed("checkpointing by FSDP beside that of the Trainer, adapters or transformers 4")
        c["ckpt"] = "nonreentrant"
    c["env"] = without(c["env"], REPEATS_LAYERS)


def has_experts(config):
    try:
        with open(config) as f:
            return not {"num_experts", "num_local_experts"}.isdisjoint(json.load(f))
    except (OSError, ValueError, TypeError):
        return False


def is_decoder_layer(config, layer):
    try:
        with open(config) as f:
            return layer == json.load(f)["architectures"][0].replace("ForCausalLM", "DecoderLayer")
    except (OSError, ValueError, KeyError, IndexError):
        return False
