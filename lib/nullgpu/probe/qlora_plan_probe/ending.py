"""How a program ends: by itself, by an exception, or because the steps that were asked for are over."""
import atexit
import faulthandler
import os
import signal
import sys

from . import library

_finish = None


def install(recorder, phases, parts, alone):
    """Wraps up the record whichever way the program ends; `parts` have a write() for what they gathered. A rank that is
    played `alone` leaves at once when all is well: threads of its process groups would look for peers as they go."""
    global _finish
    state = {"done": False, "well": True}

    def finish(reason):
        if state["done"] or not recorder.active:
            return
        state["done"] = True
        phases.close_rest()
        for part in parts:
            part.write()
        recorder.write("library", unimplemented=library.unimplemented(), assumptions=library.assumptions())
        rank, world_size = rank_of_process()
        recorder.write("end", reason=reason, versions=_versions(), rank=rank, world_size=world_size)

    _finish = finish
    excepthook = sys.excepthook

    def on_exception(kind, value, traceback):
        import torch

        state["well"] = False
        memory = isinstance(value, torch.cuda.OutOfMemoryError) or "out of memory" in str(value)[:200].lower()
        recorder.write("exception", type=kind.__name__, message=str(value), out_of_memory=memory)
        excepthook(kind, value, traceback)

    sys.excepthook = on_exception
    _real_exit, python_exit = os._exit, sys.exit

    def exit_python(status=None):
        state["well"] = state["well"] and status in (None, 0)
        python_exit(status)

    sys.exit = exit_python

    def at_exit():
        finish("exit")
        if alone and state["well"] and recorder.active:
            _flush()
            _real_exit(0)

    atexit.register(at_exit)

    def exit_at_once(status):
        finish("exit")
        _real_exit(status)

    os._exit = exit_at_once
    # On a hang the command asks for the place where every thread is.
    if signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL:
        faulthandler.register(signal.SIGUSR2, all_threads=True, chain=False)


def end_now(reason):
    """The program has done what was asked for; nothing of it runs any more."""
    _finish(reason)
    _flush()
    os._exit(0)


def _flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


def rank_of_process():
    """(rank, world size) as the launcher's variables have them."""
    def number(name, otherwise):
        text = os.environ.get(name, "")
        return int(text) if text.isdigit() else otherwise

    return number("RANK", 0), number("WORLD_SIZE", 1)


def _versions():
    """Of the libraries that the program has loaded, as they call themselves."""
    names = ("torch", "transformers", "peft", "accelerate", "bitsandbytes", "deepspeed", "trl", "torchtune", "axolotl",
             "llamafactory", "unsloth", "liger_kernel", "flash_attn", "lightning", "torchtitan")
    versions = {}
    for name in names:
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            versions[name] = version
    return versions
