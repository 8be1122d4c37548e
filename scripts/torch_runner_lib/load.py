"""The model: loaded, quantized, adapted."""

import torch
import transformers
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from .section import Refused

# Shapes that the checkpoint's config.json must have as the job has them.
SHAPES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
          "vocab_size", "max_position_embeddings", "tie_word_embeddings", "model_type", "sliding_window")
# Told by other keys of config.json, or under other names.
DERIVED = ("name", "head_dim", "qkv_bias", "attention_bias", "mlp_bias", "experts", "attn_logit_softcapping",
           "final_logit_softcapping", "rope_type", "original_max_position_embeddings", "partial_rotary_factor",
           "checkpoint_dtype", "stacked_experts", "max_window_layers", "sliding_window_pattern", "no_rope_layer_interval",
           "rms_norm_eps", "rope_theta", "rope_scaling", "query_pre_attn_scalar", "embedding_multiplier",
           "residual_multiplier", "attention_multiplier", "logits_scaling", "logit_scale", "rope_local_base_freq")


def at_least(*version):
    return tuple(int(part) for part in transformers.__version__.split(".")[:2]) >= version


def check_shapes(model, checkpoint):
    config = transformers.AutoConfig.from_pretrained(checkpoint)
    for key in SHAPES:
        wanted = model.take(key, None)
        there = getattr(config, key, None)
        if wanted is not None and there != wanted:
            raise Refused(f"model.{key} is {wanted} in the job, and {there} in {checkpoint}")
    model.told(*DERIVED)
    return config


def quantization_config(section):
    if section is None:
        return None
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=section.take("quant_type"),
        bnb_4bit_use_double_quant=section.take("double_quant"),
        bnb_4bit_quant_storage=getattr(torch, section.take("quant_storage")),
        bnb_4bit_compute_dtype=getattr(torch, section.take("compute_dtype")),
    )


def from_pretrained(checkpoint, dtype, attention, quantization, loading, device):
    """`loading`: gpu, cpu or rank0, which FSDP's variables or DeepSpeed's configuration see to."""
    options = {"dtype" if at_least(4, 56) else "torch_dtype": getattr(torch, dtype), "attn_implementation": attention}
    if quantization is not None:
        options["quantization_config"] = quantization
    if loading == "gpu":
        options["device_map"] = {"": device}
    return AutoModelForCausalLM.from_pretrained(checkpoint, **options)


def prepared(model, section, checkpointing):
    """What a 4-bit base goes through before it gets its adapter."""
    if section is None:
        return model
    prepares, casts = section.take("prepare_kbit"), section.take("trl_bf16_cast")
    section.finish()
    if not prepares:
        if casts:
            raise Refused("quantization.trl_bf16_cast: TRL casts only after prepare_model_for_kbit_training")
        return model
    import peft

    return peft.prepare_model_for_kbit_training(
        model, use_gradient_checkpointing=checkpointing is not None, gradient_checkpointing_kwargs=checkpointing)


def adapted(model, section, checkpointing, bf16_cast):
    if section is None:
        return model
    import peft

    section.only("type", "lora", why="it has LoRA alone")
    dtype, autocast = section.take("dtype", None), section.take("autocast_adapter_dtype")
    options = {key: section.take(key) for key in ("r", "lora_alpha", "lora_dropout", "use_dora", "use_rslora",
                                                  "target_modules")}
    for key in ("exclude_modules", "layers_to_transform", "layers_pattern", "target_parameters", "modules_to_save",
                "trainable_token_indices", "rank_pattern", "alpha_pattern", "bias", "lora_bias"):
        value = section.take(key, None)
        if value:
            options[key] = value
    section.finish()
    if isinstance(options["target_modules"], list):
        options["target_modules"] = [name for entry in options["target_modules"]
                                     for name in (plain_linears(model) if entry == "all-linear" else [entry])]
    model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **options),
                                **({} if autocast else {"autocast_adapter_dtype": False}))
    if bf16_cast:
        trl_casts(model)
    if dtype:  # as TRL casts what is trained
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.to(getattr(torch, dtype))
    if checkpointing is not None:
        model.enable_input_require_grads()
    return model


def plain_linears(model):
    """The last parts of the names of all linear layers but the head, as axolotl lists them (loaders/adapter.py)."""
    head = model.get_output_embeddings()
    return sorted({name.rsplit(".", 1)[-1] for name, module in model.named_modules()
                   if isinstance(module, torch.nn.Linear) and module is not head})


def trl_casts(model):
    """peft_module_casting_to_bf16 (trl/trainer/utils.py, 0.13), which later versions of TRL no longer have."""
    try:
        from trl.trainer.utils import peft_module_casting_to_bf16
    except ImportError as error:
        raise Refused(f"quantization.trl_bf16_cast: this TRL has no peft_module_casting_to_bf16 ({error})") from error
    peft_module_casting_to_bf16(model)
