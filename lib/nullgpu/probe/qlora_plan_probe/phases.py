"""Cuts the run of a training program into phases and records what each takes.

The phases tile the run: what lies between two of them (a batch that goes to the device) counts for the one that
follows. They are found by what every program does, whatever its framework: it runs backward, steps an optimizer, drops
gradients, saves. Nothing is hooked inside of a forward or backward pass, so that torch.compile sees the program that it
would see, and no tensor is touched.
"""
import io
import threading

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from . import imports
from .counters import Counters
from .ending import end_now
from .imports import replace
from .library import peak as device_peak


class Phases:
    def __init__(self, request, recorder):
        self._steps_wanted = request.steps
        self._recorder = recorder
        self._counters = Counters()
        self._thread = threading.get_ident()
        self._micro = 0
        self._step = 0
        self._stepping = 0  # depth: an optimizer may be made of others
        self._in_backward = False
        self._saving = 0
        self._trained = False  # the first forward has begun
        self._model_there = False
        self._preparing_now = False
        self._stepped = False  # since the last forward
        self._evaluating = False
        self.divides = True  # else the program tells its phases itself
        self.on_close = []  # functions of the phase's name, called before its counters are read
        self.on_optimizer = []  # functions of an optimizer that is about to step for the first time
        self._optimizers = set()

    # ---- phases ------------------------------------------------------------------------------------------------
    def close(self, name, phase):
        """What happened since the last phase was this one."""
        if self.divides:
            self.record(name, phase)

    def record(self, name, phase):
        if not self._recorder.active:
            return
        for function in self.on_close:
            function(name)
        for device, peaks, held, counts in self._counters.close_phase():
            self._recorder.write("phase", name=name, phase=phase, device=device, peak=peaks, held=held,
                                 device_peak=device_peak(device), **counts)

    def close_rest(self):
        """The program is at its end."""
        self._end_evaluation()
        if self._trained:
            self.close("end", "end")
        else:
            self.close("load", "load")

    def _loaded(self):
        if not self._trained and not self._preparing_now:
            self.close("load", "load")
            self._model_there = True

    def _begin_preparing(self):
        if not self._model_there:
            self._loaded()
        self._preparing_now = True

    def _first_forward(self):
        if not self._trained:
            self._begin_preparing()
            self.close("prepare", "prepare")
            self._trained = True

    def _stop_if_done(self):
        """The steps that were asked for are over once the program turns to something else."""
        if self._steps_wanted and self._step >= self._steps_wanted:
            self.close("end", "end")
            end_now("steps")

    # ---- training ----------------------------------------------------------------------------------------------
    def _training_forward(self, module, inputs=()):
        """Before the outermost module of the device runs for the first time."""
        if module.training and torch.is_grad_enabled() and self._here() \
                and _on_device((inputs, next(module.parameters(), None))):
            self._first_forward()
            self._remove_first.remove()

    def _here(self):
        return threading.get_ident() == self._thread

    def _backward(self, old):
        def backward(*arguments, **options):
            if self._in_backward or not self._here() or _is_traced(arguments) or not _on_device(arguments):
                return old(*arguments, **options)
            self._stop_if_done()
            self._first_forward()
            self._end_evaluation()
            self._micro += 1
            self.close(f"micro{self._micro}.forward", "forward")
            self._in_backward = True
            self._stepped = False
            try:
                return old(*arguments, **options)
            finally:
                self._in_backward = False
                self.close(f"micro{self._micro}.backward", "backward")

        return backward

    def _replay(self, old):
        """Of a CUDA graph: what was captured is run again, a forward and backward pass or parts of them, of which nothing
        else is seen. It takes no memory of its own."""

        def replay(graph):
            if self._trained and not self._in_backward and not self._stepping and self._here():
                self._stop_if_done()
                self._stepped = False
            return old(graph)

        return replay

    def _before_step(self, optimizer, *_unused):
        self._stepping += 1
        if self.on_optimizer and id(optimizer) not in self._optimizers:
            self._optimizers.add(id(optimizer))
            for function in self.on_optimizer:
                function(optimizer)

    def _after_step(self, *_unused):
        self._stepping -= 1
        if self._stepping or self._in_backward or not self._trained:
            return
        if not self._stepped:
            self._stepped = True
            self._step += 1
        self.close(f"step{self._step}.optimizer", "optimizer_step")

    def _zero_grad(self, old):
        def zero_grad(*arguments, **options):
            result = old(*arguments, **options)
            if self._trained and not self._stepping and not self._in_backward and self._stepped:
                self.close(f"step{self._step}.zero_grad", "zero_grad")
            return result

        return zero_grad

    def _engine_step(self, old):
        """DeepSpeed's: its optimizer is none of torch's, and steps those of torch that are inside."""

        def step(engine, *arguments, **options):
            steps = engine.is_gradient_accumulation_boundary()
            self._stepping += steps
            try:
                return old(engine, *arguments, **options)
            finally:
                if steps:
                    self._after_step()

        return step

    # ---- beside training ---------------------------------------------------------------------------------------
    def _mode(self, old):
        def train(module, mode=True):
            if self._micro and self._here() and not self._in_backward and not self._saving:
                if mode and module.training is False:
                    self._end_evaluation()
                elif not mode and module.training and self._stepped and not self._evaluating:
                    self._stop_if_done()
                    self._evaluating = True
            return old(module, mode)

        return train

    def _end_evaluation(self):
        if self._evaluating:
            self._evaluating = False
            self.close("evaluation", "evaluation")

    def _save(self, old):
        def save(*arguments, **options):
            if not self._trained or self._in_backward or not self._here() or _into_memory(*arguments, **options):
                return old(*arguments, **options)
            self._end_evaluation()
            self._saving += 1
            try:
                return old(*arguments, **options)
            finally:
                self._saving -= 1
                if not self._saving:
                    self.close("save", "save")

        return save

    def _loading(self, old):
        function = old.__func__

        def from_pretrained(cls, *arguments, **options):
            result = function(cls, *arguments, **options)
            if isinstance(result, torch.nn.Module) or isinstance(result, tuple):
                self._loaded()
            return result

        return classmethod(from_pretrained)

    def _adapting(self, old):
        def init(*arguments, **options):
            if self._trained:
                return old(*arguments, **options)
            self._begin_preparing()
            old(*arguments, **options)
            self.close("adapter", "adapter")

        return init

    def _preparing(self, old):
        def prepare(*arguments, **options):
            if not self._trained:
                self._begin_preparing()
            return old(*arguments, **options)

        return prepare

    def _await_forward(self):
        self._remove_first = torch.nn.modules.module.register_module_forward_pre_hook(self._training_forward)

    # ---- hooks -------------------------------------------------------------------------------------------------
    def install(self):
        module = torch.nn.Module
        self._await_forward()
        replace(torch.autograd, "backward", self._backward)
        replace(torch.autograd, "grad", self._backward)
        replace(torch.cuda.CUDAGraph, "replay", self._replay)
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)
        replace(torch.optim.Optimizer, "zero_grad", self._zero_grad)
        replace(torch.optim.Optimizer, "__init__", self._preparing)
        replace(module, "zero_grad", self._zero_grad)
        replace(module, "train", self._mode)
        replace(module, "compile", self._compile)
        replace(torch, "save", self._save)
        imports.after_import("safetensors.torch", lambda m: replace(m, "save_file", self._save))
        imports.after_import("torch.distributed.checkpoint", lambda m: replace(m, "save", self._save))
        imports.after_import("torch.nn.parallel.distributed",
                             lambda m: replace(m.DistributedDataParallel, "__init__", self._preparing))
        imports.after_import("torch.distributed.fsdp.fully_sharded_data_parallel",
                             lambda m: replace(m.FullyShardedDataParallel, "__init__", self._preparing))
        imports.after_import("transformers.modeling_utils", self._hook_transformers)
        imports.after_import("torch._dynamo.eval_frame",
                             lambda m: replace(m.OptimizedModule, "__call__", self._compiled_module))
        imports.after_import("peft.peft_model", lambda m: replace(m.PeftModel, "__init__", self._adapting))
        imports.after_import("deepspeed.runtime.engine", self._hook_deepspeed)

    def _compile(self, old):
        """Of a whole model in place: the hook before the first forward would be compiled with it, so it comes before."""

        def compile_in_place(module, *arguments, **options):
            old(module, *arguments, **options)
            compiled = module._compiled_call_impl

            def call(*inputs, **named):
                if not self._trained:
                    self._training_forward(module)
                return compiled(*inputs, **named)

            module._compiled_call_impl = call

        return compile_in_place

    def _compiled_module(self, old):
        """What torch.compile puts around a module: it warns of hooks like that before the first forward, and they would
        be compiled as well."""

        def call(module, *inputs, **named):
            if self._trained:
                return old(module, *inputs, **named)
            self._training_forward(module, inputs)
            if self._trained:
                return old(module, *inputs, **named)
            self._remove_first.remove()
            try:
                return old(module, *inputs, **named)
            finally:
                if not self._trained:  # one hook, also where compiled modules call each other
                    self._remove_first.remove()
                    self._await_forward()

        return call

    def _hook_transformers(self, modeling):
        holder = modeling.PreTrainedModel
        holder.from_pretrained = self._loading(holder.__dict__["from_pretrained"])

    def _hook_deepspeed(self, engine):
        replace(engine.DeepSpeedEngine, "step", self._engine_step)
        replace(engine.DeepSpeedEngine, "backward", self._backward)


def _on_device(things):
    """Whether one of them is a tensor of the device: libraries try out what they can do on the host, when they begin."""
    return any(_on_device(thing) if isinstance(thing, (list, tuple)) else isinstance(thing, torch.Tensor) and thing.is_cuda
               for thing in things)


def _into_memory(_object, f=None, *_unused, **_options):
    """Whether torch.save packs an object that goes elsewhere, as c10d does with those that ranks tell each other."""
    return isinstance(f, io.BytesIO)


def _is_traced(arguments):
    """Whether torch.compile works out a graph: there is nothing on the device then."""
    first = arguments[0] if arguments else None
    tensors = first if isinstance(first, (list, tuple)) else (first,)
    return any(type(tensor).__name__ in ("FakeTensor", "FunctionalTensor") for tensor in tensors)
