"""The DeepSpeed part of an oracle case: `ds`, a DeepSpeed JSON file, as the options of a zero plan."""

# What the job says elsewhere.
BATCH = {"train_micro_batch_size_per_gpu": "mb", "gradient_accumulation_steps": "ga"}
# What changes no memory (lib/config/deepspeed_keys.h).
NEUTRAL = {"train_batch_size", "steps_per_print", "wall_clock_breakdown", "memory_breakdown", "scheduler", "dump_state", "comms_logger", "flops_profiler", "tensorboard", "wandb", "csv_monitor", "comet", "autotuning",
           "checkpoint", "aio", "activation_checkpointing", "elasticity", "seq_parallel_communication_data_type", "timers",
           "dataloader_drop_last", "curriculum_learning"}
NEUTRAL_ZERO = {"stage", "ignore_unused_parameters", "load_from_fp32_weights", "elastic_checkpoint", "override_module_apply",
                "log_trace_cache_warnings", "enable_sanity_checks", "pipeline_loading_checkpoint", "mics_hierarchical_params_gather",
                "leaf_module"}
STAGE3 = {"sub_group_size", "offload_param", "zero_hpz_partition_size", "memory_efficient_linear", "zero_quantized_weights",
          "zero_quantized_nontrainable_weights", "zero_quantized_gradients"}
STAGES12 = {"allgather_partitions", "allgather_bucket_size", "use_multi_rank_bucket_allreduce", "round_robin_gradients"}
OWN_OPTIMIZERS = {"adam", "adamw", "adagrad", "lion"}  # DeepSpeed's, in small or capital letters
WORDS = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
NEUTRAL_OFFLOAD = {"fast_init", "pipeline_read", "pipeline_write"}
NEUTRAL_FP16 = {"loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis", "min_loss_scale", "auto_cast",
                "consecutive_hysteresis"}


def plan_of(case, unexpressed):
    """(plan name, its options) of a case; `unexpressed` makes the exception for what has no key here."""
    ds = case["ds"] or {}
    zero = dict(ds.get("zero_optimization", {}))
    for key, own in BATCH.items():
        if ds.get(key, case[own]) not in (case[own], "auto"):
            raise unexpressed(f"{key} that differs from the Trainer's")
    stage = zero.get("stage", 0)
    options = {k: number(v) for k, v in zero.items() if v is not None and not neutral_in_zero(k, stage)}
    options |= {k: v for k, v in ds.items() if k not in BATCH and k not in NEUTRAL and k != "zero_optimization"}
    for section in ("offload_optimizer", "offload_param"):
        if section in options:
            options[section] = {k: number(v) for k, v in options[section].items() if k not in NEUTRAL_OFFLOAD}
    if "optimizer" in options:
        own = options["optimizer"]
        params = {k: v for k, v in own.get("params", {}).items() if k in ("torch_adam", "adam_w_mode", "weight_decay", "momentum")}
        type_ = own["type"].lower() if own["type"].lower() in OWN_OPTIMIZERS else own["type"]
        options["optimizer"] = {"type": type_, "params": {"weight_decay": "none"} | params}
        options.setdefault("zero_allow_untested_optimizer", False)
    if "torch_autocast" in options:
        options["torch_autocast"] = {k: WORDS.get(v, v) if k == "dtype" else v for k, v in options["torch_autocast"].items()
                                     if k != "lower_precision_safe_modules"}
    options.setdefault("gradient_clipping", "none")  # DeepSpeed's own default
    for section, neutral in (("bf16", {"immediate_grad_update"}), ("fp16", NEUTRAL_FP16)):
        if section in options:
            options[section] = {"enabled": "none"} | {k: v for k, v in options[section].items() if k not in neutral}
    return f"zero{stage}", options


def neutral_in_zero(key, stage):
    """Also what another stage reads alone."""
    other = key in STAGES12 if stage == 3 else key in STAGE3 or key.startswith("stage3_")
    return key in NEUTRAL_ZERO or other


def number(value):
    """JSON files write 5e8 for 500000000."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
