"""Rows of measured.csv as cases of oracle/run_case.py, which then runs what was measured, under `qlora-plan trace`."""
import os

from . import jobs, measured
from .jobs import Unexpressed


# Where the class that FSDP wraps is not called after the architecture.
LAYERS = {"santacoder-1b.json": "GPTBigCodeBlock"}

# What `accelerate launch` sets for the accelerate.yaml of the fms rows (fms-acceleration, scripts/benchmarks), beyond what
# run_case.py sets by itself: transformers looks at it while it loads.
FMS_FSDP = {"ACCELERATE_USE_FSDP": "true", "FSDP_CPU_RAM_EFFICIENT_LOADING": "true", "FSDP_SYNC_MODULE_STATES": "true"}


def record_of(row, shared):
    """As a line of oracle/*.jsonl, with the figures that were published; raises Unexpressed with the reason."""
    sections = measured.from_row(row, shared).sections
    versions = sections["stack"]
    stack = next((name for name, there in jobs.STACKS.items() if versions.items() <= there.items()), None)
    if stack is None:
        raise Unexpressed("no environment has these versions: " + ", ".join(f"{k} {v}" for k, v in versions.items()))
    values = dict(measured.measured_values(row))
    record = {"stack": stack, "case": {"id": row["id"], **case_of(sections)}, "versions": versions, "as_saved": True,
              "peak": {name.removeprefix("peak_"): value for name, value in values.items() if name.startswith("peak_")}}
    return record | ({"end_allocated": values["end_allocated"]} if "end_allocated" in values else {})


def case_of(sections):
    model, training, plan = sections["model"], sections["training"], sections["plans"][0]
    if "config" not in model:
        raise Unexpressed(f"no config.json of {model['name']} at hand")
    precision = training["mixed_precision"]
    if precision not in ("no", "bf16"):
        raise Unexpressed(f"mixed precision {precision} is no option of run_case.py")
    checkpointing = training["gradient_checkpointing"]
    case = {
        "config": os.path.abspath(model["config"]), "overrides": model.get("overrides", {}), "dtype": model["dtype"],
        "plan": plan, "world": 1 if plan == "single" else sections["cluster"]["world_size"], "bf16": precision == "bf16",
        "mb": training["micro_batch_size"], "seq": training["seq_len"], "ga": training["gradient_accumulation_steps"],
        "ckpt": "none" if not checkpointing else "reentrant" if checkpointing["use_reentrant"] else "nonreentrant",
        "optim": training["optimizer"], "clip": training["max_grad_norm"], "attn": training["attn_implementation"],
    }
    case["layer"] = LAYERS.get(os.path.basename(model["config"]))
    if plan.startswith("fsdp1"):
        case |= {"env": FMS_FSDP, "alloc_env": FMS_FSDP}
    if "quantization" not in sections:  # from_pretrained without a device_map: the Trainer moves the model, or FSDP
        case["loader"] = "none"
    if quantization := sections.get("quantization"):
        if quantization["trl_bf16_cast"]:
            raise Unexpressed("TRL's cast of the adapter after prepare_model_for_kbit_training is no option of run_case.py")
        case |= {"quant": quantization["quant_type"], "dq": quantization["double_quant"],
                 "storage": quantization["quant_storage"], "kbit": quantization["prepare_kbit"]}
    if adapter := sections.get("adapter"):
        case["adapter"] = {key: value for key, value in adapter.items() if key not in ("type", "autocast_adapter_dtype")}
        case["autocast_adapter"] = adapter.get("autocast_adapter_dtype", True)
    return case
