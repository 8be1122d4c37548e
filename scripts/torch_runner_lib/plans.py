"""What a sharding plan changes of the Trainer: its arguments, and what accelerate has no word for."""

import torch

from .section import Refused, Section

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "none": None}


class Plan:
    """The plan's options, all taken; hooks around the Trainer's work."""

    def __init__(self, name, loading):
        self.name, self.loading = name, loading
        self.arguments = {}  # of TrainingArguments

    def after_accelerator(self, trainer):
        """The Trainer is made, nothing is wrapped."""

    def before_wrap(self, trainer):
        """The Trainer has set the wrapping up, and comes to it."""

    def after_wrap(self, model):
        """The model is in the runtime's hands."""


class Ddp(Plan):
    def __init__(self, name, loading, options):
        super().__init__(name, loading)
        self.arguments = {"ddp_find_unused_parameters": False, "ddp_bucket_cap_mb": options.take("bucket_cap_mb")}
        self._views = options.take("gradient_as_bucket_view")

    def before_wrap(self, trainer):
        if trainer.accelerator.ddp_handler is not None:
            trainer.accelerator.ddp_handler.gradient_as_bucket_view = self._views
        elif self._views:
            raise Refused(f"plans.{self.name}.gradient_as_bucket_view: the Trainer made no handler for DDP")


class Fsdp1(Plan):
    def __init__(self, name, loading, options):
        super().__init__(name, loading)
        # In the launcher's variables (environment.py).
        options.told("sharding_strategy", "use_orig_params", "cpu_offload", "backward_prefetch", "forward_prefetch",
                     "transformer_cls_names_to_wrap", "min_num_params")
        self._limit = options.take("limit_all_gathers")
        self._policy_given = options.take("auto_wrap_policy") != "auto"
        policy = options.section("mixed_precision_policy")
        self._dtypes = {key: value for key in ("param_dtype", "reduce_dtype", "buffer_dtype")
                        if (value := policy.take(key)) != "auto"}
        policy.finish()

    def after_accelerator(self, trainer):
        plugin = trainer.accelerator.state.fsdp_plugin
        plugin.limit_all_gathers = self._limit
        self._own_policy = plugin.auto_wrap_policy

    def before_wrap(self, trainer):
        plugin = trainer.accelerator.state.fsdp_plugin
        if self._policy_given:
            plugin.auto_wrap_policy = self._own_policy  # not PEFT's, which the Trainer puts in its place
        if self._dtypes:
            from torch.distributed.fsdp import MixedPrecision

            given = plugin.mixed_precision_policy or MixedPrecision()
            fields = {key: getattr(given, key) for key in ("param_dtype", "reduce_dtype", "buffer_dtype")}
            plugin.mixed_precision_policy = MixedPrecision(
                **(fields | {key: DTYPES[value] for key, value in self._dtypes.items()}))


class Fsdp2(Plan):
    def __init__(self, name, loading, options):
        super().__init__(name, loading)
        options.told("hybrid", "dp_shard_size", "auto_wrap_policy", "transformer_cls_names_to_wrap")  # in the launcher's variables
        self._reshard = options.take("reshard_after_forward")
        self._ignored = options.take("ignored_params")
        self._forward, self._backward = options.take("forward_prefetch"), options.take("backward_prefetch")
        options.only("casts_to_float32", False, why="accelerate 1.12 and newer do not")
        self._offloads, self._pins = options.take("cpu_offload"), options.take("pin_memory", True)
        policy = options.section("mp_policy")
        self._casts_inputs = policy.take("cast_forward_inputs")
        self._dtypes = {key: value for key in ("param_dtype", "reduce_dtype", "output_dtype")
                        if (value := policy.take(key)) != "auto"}
        policy.finish()

    def after_accelerator(self, trainer):
        plugin = trainer.accelerator.state.fsdp_plugin
        plugin.reshard_after_forward = self._reshard
        if self._offloads:
            from torch.distributed.fsdp import CPUOffloadPolicy

            plugin.cpu_offload = CPUOffloadPolicy(pin_memory=self._pins)

    def before_wrap(self, trainer):
        plugin = trainer.accelerator.state.fsdp_plugin
        if self._dtypes or not self._casts_inputs:
            from torch.distributed.fsdp import MixedPrecisionPolicy

            given = plugin.mixed_precision_policy or MixedPrecisionPolicy()
            fields = {key: getattr(given, key) for key in ("param_dtype", "reduce_dtype", "output_dtype")}
            plugin.mixed_precision_policy = MixedPrecisionPolicy(
                **(fields | {key: DTYPES[value] for key, value in self._dtypes.items()}),
                cast_forward_inputs=self._casts_inputs)
        if self._ignored != "none":
            self._ignore(trainer.model)

    def _ignore(self, model):
        """fully_shard's ignored_params, which accelerate offers for whole modules only."""
        import torch.distributed.fsdp as fsdp

        def is_ignored(parameter):
            packed = type(parameter).__name__ == "Params4bit"
            trained = parameter.requires_grad
            return {"quantized": packed, "base": not trained, "adapter": trained}[self._ignored]

        ignored = {parameter for parameter in model.parameters() if is_ignored(parameter)}
        fully_shard = fsdp.fully_shard

        def with_ignored(module, **options):
            options["ignored_params"] = set(options.get("ignored_params") or ()) | ignored
            return fully_shard(module, **options)

        fsdp.fully_shard = with_ignored

    def after_wrap(self, model):
        layers = [m for m in model.modules() if type(m).__name__.endswith("DecoderLayer")]
        layers = [m for m in layers if hasattr(m, "set_modules_to_forward_prefetch")]
        for count, ordered, name in ((self._forward, layers, "set_modules_to_forward_prefetch"),
                                     (self._backward, layers[::-1], "set_modules_to_backward_prefetch")):
            for i, layer in enumerate(ordered if count else ()):
                getattr(layer, name)(ordered[i + 1 : i + 1 + count])


class Zero(Plan):
    def __init__(self, name, loading, config):
        super().__init__(name, loading)
        if config is None:
            raise Refused("deepspeed is missing: the plan's configuration, as export --to runner writes it")
        self.arguments = {"deepspeed": config}


def make(plan, deepspeed):
    """Of the job's `plan`."""
    name, loading, options = plan.take("name"), plan.take("loading"), plan.section("options")
    plan.finish()
    if name == "single":
        made = Plan(name, loading)
    elif name == "ddp":
        made = Ddp(name, loading, options)
    elif name.startswith("zero"):
        made, options = Zero(name, loading, deepspeed), Section("", {})  # the same as its configuration
    elif name.startswith("fsdp1"):
        made = Fsdp1(name, loading, options)
    elif name.startswith("fsdp2"):
        made = Fsdp2(name, loading, options)
    else:
        raise Refused(f"plan {name} is not run here")
    if options is not None:
        options.finish()
    return made
