"""What must stand in the environment before torch and accelerate are imported: as a launcher would put it there."""

import os

FSDP1_OPTIONS = {
    "use_orig_params": "FSDP_USE_ORIG_PARAMS",
    "forward_prefetch": "FSDP_FORWARD_PREFETCH",
    "cpu_offload": "FSDP_OFFLOAD_PARAMS",
}


def prepare(job):
    """Sets the variables of `accelerate launch` for the job's plan."""
    values = job._values  # the parts take their keys; this only looks
    plan = values.get("plan", {})
    name, options = plan.get("name", ""), plan.get("options", {})
    allocator = values.get("job", {}).get("allocator")
    if allocator:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = allocator
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    training = values.get("job", {}).get("training", {})
    os.environ["ACCELERATE_MIXED_PRECISION"] = training.get("mixed_precision", "no")
    if "sharding_strategy" in options:
        os.environ.update(fsdp1(options))
    elif "reshard_after_forward" in options:
        os.environ.update(fsdp2(options, values["job"]["cluster"]))
    if os.environ.get("ACCELERATE_USE_FSDP"):
        asked = training.get("checkpoint", {}).get("state_dict_type", "SHARDED_STATE_DICT")
        if asked != "auto":  # which is accelerate's own choice
            os.environ["FSDP_STATE_DICT_TYPE"] = asked
        efficient = flag(plan.get("loading") == "rank0")
        os.environ.update(FSDP_CPU_RAM_EFFICIENT_LOADING=efficient, FSDP_SYNC_MODULE_STATES=efficient)
    if name.startswith("zero"):
        os.environ["ACCELERATE_USE_DEEPSPEED"] = "true"
    if "WORLD_SIZE" not in os.environ:  # the Trainer would spread the batch over all that it sees
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]


def flag(value):
    return "true" if value else "false"


def common(version, wrap, options):
    classes = options.get("transformer_cls_names_to_wrap", "auto")
    named = {} if classes == "auto" else {"FSDP_TRANSFORMER_CLS_TO_WRAP": ",".join(classes)}
    return named | {
        "ACCELERATE_USE_FSDP": "true",
        "FSDP_VERSION": version,
        "FSDP_AUTO_WRAP_POLICY": wrap.upper(),
        "FSDP_ACTIVATION_CHECKPOINTING": "false",
    }


def fsdp1(options):
    policy = options["auto_wrap_policy"]
    strategy = options["sharding_strategy"].upper()
    variables = common("1", "transformer_based_wrap" if policy == "auto" else policy, options)
    variables |= {variable: flag(options[key]) for key, variable in FSDP1_OPTIONS.items()}
    return variables | {
        "FSDP_SHARDING_STRATEGY": strategy,
        "FSDP_RESHARD_AFTER_FORWARD": strategy,
        "FSDP_BACKWARD_PREFETCH": options["backward_prefetch"].upper(),
        "FSDP_MIN_NUM_PARAMS": str(options["min_num_params"]),
    }


def fsdp2(options, cluster):
    variables = common("2", options["auto_wrap_policy"], options)
    variables |= {
        "FSDP_RESHARD_AFTER_FORWARD": flag(options["reshard_after_forward"]),
        "FSDP_OFFLOAD_PARAMS": flag(options["cpu_offload"]),
    }
    if options.get("hybrid"):
        ranks = cluster["world_size"]
        shards = options["dp_shard_size"] or min(cluster["gpus_per_node"], ranks)
        variables |= {
            "ACCELERATE_USE_PARALLELISM_CONFIG": "true",
            "PARALLELISM_CONFIG_DP_REPLICATE_SIZE": str(ranks // shards),
            "PARALLELISM_CONFIG_DP_SHARD_SIZE": str(shards),
        }
    return variables
