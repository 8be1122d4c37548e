"""The DeepSpeed part of an oracle case: `ds`, a DeepSpeed JSON file, as the options of a zero plan."""

# What the job says elsewhere, or what changes no memory.
BATCH = {"train_micro_batch_size_per_gpu": "mb", "gradient_accumulation_steps": "ga"}
NEUTRAL = {"train_batch_size", "steps_per_print", "wall_clock_breakdown", "zero_allow_untested_optimizer"}
SECTIONS = {"bf16", "fp16"}
KEPT = {"gradient_clipping", "zero_force_ds_cpu_optimizer"} | SECTIONS
NEUTRAL_ZERO = {"stage", "ignore_unused_parameters", "load_from_fp32_weights"}
NEUTRAL_FP16 = {"loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis", "min_loss_scale", "auto_cast",
                "consecutive_hysteresis"}


def plan_of(case, unexpressed):
    """(plan name, its options, clipping) of a case; `unexpressed` makes the exception for what has no key here. clipping:
    whether DeepSpeed clips as the Trainer says; without its key it does not."""
    ds = case["ds"] or {}
    zero = dict(ds.get("zero_optimization", {}))
    for key, own in BATCH.items():
        if ds.get(key, case[own]) not in (case[own], "auto"):
            raise unexpressed(f"{key} that differs from the Trainer's")
    options = {k: number(v) for k, v in zero.items() if k not in NEUTRAL_ZERO}
    for key, value in ds.items():
        if key in KEPT:
            options[key] = value
        elif key not in BATCH and key not in NEUTRAL and key != "zero_optimization":
            raise unexpressed(f"ds.{key}")
    if "fp16" in options:
        options["fp16"] = {k: v for k, v in options["fp16"].items() if k not in NEUTRAL_FP16}
    return f"zero{zero.get('stage', 0)}", options, "gradient_clipping" in ds


def number(value):
    """JSON files write 5e8 for 500000000."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
