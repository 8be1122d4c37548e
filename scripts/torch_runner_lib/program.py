"""The program itself: load, adapt, train, evaluate, save."""

import os
import sys
import tempfile

import torch

from . import load, plans, routing, stack
from .phases import Phases
from .section import Refused


# Optimizers that the Trainer has no name for.
OWN_OPTIMIZERS = {
    "adamw_torch_forloop": lambda: (torch.optim.AdamW, {"lr": 1e-4, "foreach": False, "fused": False}),
    "muon": lambda: (torch.optim.Muon, {"lr": 1e-4}),
}


def run(whole, asked):
    job, plan_section = whole.section("job"), whole.section("plan")
    if job is None or plan_section is None:
        raise Refused("expected job and plan, as export --to runner writes them")
    plan = plans.make(plan_section, whole.take("deepspeed", None))
    whole.finish()
    sections = {name: job.section(name) for name in ("model", "quantization", "adapter", "training", "cluster", "stack")}
    job.told("allocator", "parameters")  # environment.py; a count
    job.finish()
    needed = ["torch", "transformers", "accelerate"]
    needed += ["peft"] if sections["adapter"] else []
    needed += ["bitsandbytes"] if sections["quantization"] else []
    needed += ["deepspeed"] if plan.name.startswith("zero") else []
    versions = stack.check(sections["stack"], needed, asked.any_stack)
    ranks = check_cluster(sections["cluster"], plan)
    trained = Training(sections["training"], ranks)
    begin_group(ranks)
    if asked.snapshot:
        torch.cuda.memory._record_memory_history(max_entries=5_000_000, stacks="python")
    phases = Phases(torch)
    status = 0
    try:
        with tempfile.TemporaryDirectory(prefix="torch-runner-") as folder:
            train(sections, plan, trained, asked.checkpoint, phases, folder)
    except torch.cuda.OutOfMemoryError as error:
        phases.mark("out_of_memory")
        print(f"torch_runner: {error}", file=sys.stderr)
        status = 1
    if asked.snapshot:
        torch.cuda.memory._dump_snapshot(asked.snapshot)
    if asked.out and int(os.environ.get("RANK", "0")) == 0:
        phases.write(asked.out, {"plan": plan.name, "world_size": ranks, "out_of_memory": status == 1, "versions": versions})
    if status:
        sys.exit(status)


def check_cluster(cluster, plan):
    """The number of ranks, which the launcher must have started."""
    # Of the device, which is there; and of figures that no allocation depends on.
    cluster.told("gpu", "gpus_per_node", "intra_node_bytes_per_second", "inter_node_bytes_per_second",
                 "used_by_others_bytes", "margin")
    mesh = cluster.section("mesh")
    for axis in ("tp", "cp", "pp", "ep"):
        mesh.only(axis, 1, why="it runs data parallel plans")
    mesh.finish()
    wanted = 1 if plan.name == "single" else cluster.take("world_size")
    cluster.told("world_size")
    cluster.finish()
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if started != wanted:
        raise Refused(f"the plan has {wanted} ranks, and {started} were started (torchrun sets WORLD_SIZE)")
    return wanted


def begin_group(ranks):
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if ranks > 1:
        torch.distributed.init_process_group("cuda:nccl,cpu:gloo")  # objects travel by the second
        # accelerate has that one only where FSDP gathers or offloads, and FSDP1 asks what its chunks are to lie on.
        shards = os.environ.get("FSDP_STATE_DICT_TYPE") == "SHARDED_STATE_DICT"
        if shards and os.environ.get("FSDP_OFFLOAD_PARAMS") != "true":
            torch.distributed.distributed_c10d._get_pg_default_device = lambda group=None: torch.device("cuda")
    elif os.environ.get("ACCELERATE_USE_FSDP") or os.environ.get("ACCELERATE_USE_DEEPSPEED"):
        # One rank of a sharded plan is a group of one.
        for name, value in (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500"), ("RANK", "0"), ("WORLD_SIZE", "1"),
                            ("LOCAL_RANK", "0"), ("LOCAL_WORLD_SIZE", "1")):
            os.environ.setdefault(name, value)


class Training:
    """The job's `training`, as arguments of the Trainer."""

    def __init__(self, section, ranks):
        self.ranks = ranks
        self.micro_batch_size = section.take("micro_batch_size")
        self.seq_len = section.take("seq_len")
        self.accumulation = section.take("gradient_accumulation_steps")
        self.steps = section.take("num_steps")
        self.attention = section.take("attn_implementation")
        checkpointing = section.take("gradient_checkpointing")
        self.checkpointing = checkpointing or None  # its keyword arguments
        precision = section.take("mixed_precision")
        optimizer = section.take("optimizer")
        self.own_optimizer = OWN_OPTIMIZERS.get(optimizer)
        loss = section.take("loss")
        if loss == "chunked":
            raise Refused("training.loss: chunked is not run here: no library of the stack has it")
        self.arguments = {
            "per_device_train_batch_size": self.micro_batch_size,
            "gradient_accumulation_steps": self.accumulation,
            "max_steps": self.steps,
            "bf16": precision == "bf16",
            "fp16": precision == "fp16",
            "optim": "adamw_torch" if self.own_optimizer else optimizer,
            "weight_decay": section.take("weight_decay", 0.0),
            "max_grad_norm": section.take("max_grad_norm"),
            "use_liger_kernel": loss == "liger",
        }
        targets, low_rank = section.take("optim_target_modules", None), section.take("optim_args", None)
        if targets:
            # The plan has new projections made in the last step, as every update_proj_gap-th makes them.
            low_rank["update_proj_gap"] = min(low_rank["update_proj_gap"], max(self.steps - 1, 1))
            self.arguments["optim_target_modules"] = targets
            self.arguments["optim_args"] = ",".join(f"{key}={value}" for key, value in low_rank.items())
        if section.take("tf32", False):
            self.arguments["tf32"] = True
        if section.take("sync_each_batch"):
            self.arguments["accelerator_config"] = {"gradient_accumulation_kwargs": {"sync_each_batch": True}}
        self.evaluation = section.section("evaluation")
        self.eval_samples = 0
        if self.evaluation is not None:
            self._read_evaluation(self.evaluation)
        save = section.section("save")
        self.saves = save is not None
        if save is not None:
            save.only("state_dict_type", "FULL_STATE_DICT", why="it saves whole state dicts")
            save.finish()
        checkpoint = section.section("checkpoint")
        self.checkpoints = checkpoint is not None
        if checkpoint is not None:
            checkpoint.told("state_dict_type")  # in the launcher's variables
            checkpoint.finish()
        section.finish()

    def _read_evaluation(self, section):
        batch = section.take("per_device_eval_batch_size")
        self.eval_samples = section.take("num_samples", 2 * batch * self.ranks)
        self.arguments |= {
            "per_device_eval_batch_size": batch,
            "prediction_loss_only": section.take("prediction_loss_only"),
            "eval_accumulation_steps": section.take("eval_accumulation_steps", None),
        }
        section.finish()

    def trainer_arguments(self, prepared_kbit, folder, more):
        checkpoints = self.checkpointing is not None
        return self.arguments | {
            "output_dir": folder,
            "gradient_checkpointing": checkpoints and not prepared_kbit,
            "gradient_checkpointing_kwargs": self.checkpointing,
            "logging_strategy": "no",
            "save_strategy": "steps" if self.checkpoints else "no",
            "save_steps": max(1, self.steps - 1),
            "report_to": [],
            "disable_tqdm": True,
            "learning_rate": 1e-4,
            "dataloader_num_workers": 0,
            "remove_unused_columns": False,
        } | more


class Samples(torch.utils.data.Dataset):
    """Random tokens; every sample has the whole length. An attention mask comes with them, as collators give one, where
    transformers would otherwise take the batch for packed sequences and make a mask of length by length itself
    (masking_utils.py, find_packed_sequence_indices: 4.53 until 5.0)."""

    def __init__(self, count, length, vocabulary):
        self._count, self._length, self._vocabulary = count, length, vocabulary
        self._masked = load.at_least(4, 53) and not load.at_least(5, 0)

    def __len__(self):
        return self._count

    def __getitem__(self, index):
        ids = torch.randint(0, self._vocabulary, (self._length,))
        sample = {"input_ids": ids, "labels": ids.clone()}
        return sample | {"attention_mask": torch.ones_like(ids)} if self._masked else sample


def make_trainer_class(phases, plan):
    from transformers import Trainer

    class MarkingTrainer(Trainer):
        micro = 0
        saved = False
        wrapped = False

        def create_accelerator_and_postprocess(self):
            super().create_accelerator_and_postprocess()
            plan.after_accelerator(self)
            prepare = self.accelerator.prepare

            def marked(*arguments, **options):
                plan.before_wrap(self)
                return prepare(*arguments, **options)

            self.accelerator.prepare = marked

        def get_train_dataloader(self):
            """Batches stay on the host until their turn, which is what the job's prediction has. (accelerate's loader puts
            the batches of a whole optimizer step on the GPU at once: 8 bytes a token for each of their tensors.)"""
            return torch.utils.data.DataLoader(self.train_dataset, batch_size=self.args.per_device_train_batch_size)

        def compute_loss(self, *arguments, **options):
            result = super().compute_loss(*arguments, **options)
            if self.model.training:
                self.micro += 1
                phases.mark(f"micro{self.micro}.forward")
            return result

        def training_step(self, model, *arguments, **options):
            if self.micro == 0:
                plan.after_wrap(model)
                phases.mark("prepare")
            result = super().training_step(model, *arguments, **options)
            phases.mark(f"micro{self.micro}.backward")
            return result

        def _save_checkpoint(self, *arguments, **options):
            """Once: the Trainer saves after the last step by itself."""
            if self.saved:
                return
            self.saved = True
            super()._save_checkpoint(*arguments, **options)
            phases.mark(f"step{self.state.global_step}.save")

    return MarkingTrainer


def make_callback(phases):
    from transformers import TrainerCallback

    class Marks(TrainerCallback):
        def on_optimizer_step(self, args, state, control, **_):
            phases.mark(f"step{state.global_step + 1}.optimizer")

        def on_step_end(self, args, state, control, **_):
            phases.mark(f"step{state.global_step}.zero_grad")

    return Marks()


def train(sections, plan, training, checkpoint, phases, folder):
    from transformers import TrainingArguments

    model_section, quantization = sections["model"], sections["quantization"]
    config = load.check_shapes(model_section, checkpoint)
    dtype = model_section.take("dtype")
    model_section.told("loading")  # plan.loading is what it comes to
    model_section.finish()
    kbit = quantization is not None and quantization._values.get("prepare_kbit", False)
    bf16_cast = quantization is not None and quantization._values.get("trl_bf16_cast", False)
    arguments = training.trainer_arguments(kbit, folder, plan.arguments)
    # ZeRO-3 cuts the parameters as they are made, if it is known of before.
    made = TrainingArguments(**arguments) if plan.name == "zero3" and plan.loading == "rank0" else None
    device = torch.cuda.current_device()
    torch.zeros(1, device="cuda")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model = load.from_pretrained(checkpoint, dtype, training.attention, load.quantization_config(quantization), plan.loading,
                                 device)
    routing.spread_evenly(model)
    phases.mark("load")
    model = load.prepared(model, quantization, training.checkpointing)
    model = load.adapted(model, sections["adapter"], training.checkpointing, bf16_cast)
    phases.mark("adapter")
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    count = training.micro_batch_size * training.accumulation * training.ranks * (training.steps + 2)
    options = {}
    if training.own_optimizer:
        options["optimizer_cls_and_kwargs"] = training.own_optimizer()
    # No name here may outlive its use: a parameter that is still referenced is memory that a run without marks frees.
    trainer = make_trainer_class(phases, plan)(
        model=model,
        args=made or TrainingArguments(**arguments),
        train_dataset=Samples(count, training.seq_len, text.vocab_size),
        eval_dataset=Samples(training.eval_samples, training.seq_len, text.vocab_size) if training.eval_samples else None,
        callbacks=[make_callback(phases)],
        **options,
    )
    del model
    trainer.train()
    phases.mark("end")
    if training.eval_samples:
        trainer.evaluate()
        phases.mark("evaluation")
    if training.saves:
        if trainer.is_fsdp_enabled:
            trainer.accelerator.state.fsdp_plugin.set_state_dict_type("FULL_STATE_DICT")
        trainer.save_model(os.path.join(folder, "saved"))
        phases.mark("save")
