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
    played `alone` closes its process groups, whose threads would look for peers while the interpreter goes."""
    global _finish
    done = False

    def finish(reason):
        nonlocal done
        if done or not recorder.active:
            return
        done = True
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

        memory = isinstance(value, torch.cuda.OutOfMemoryError) or "out of memory" in str(value)[:200].lower()
        recorder.write("exception", type=kind.__name__, message=str(value), out_of_memory=memory)
        excepthook(kind, value, traceback)

    sys.excepthook = on_exception
    exit_now = os._exit

    def at_exit():
        finish("exit")
        if alone and recorder.active:
            _close_groups()

    atexit.register(at_exit)

    def exit_at_once(status):
        finish("exit")
        exit_now(status)

    os._exit = exit_at_once
    if not faulthandler.is_enabled():
        faulthandler.enable(all_threads=False)  # a crash says in which line of the program
    # On a hang the command asks for the place where every thread is.
    if signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL:
        faulthandler.register(signal.SIGUSR2, all_threads=True, chain=False)


def end_now(reason):
    """The program has done what was asked for; nothing of it runs any more."""
    _finish(reason)
    _flush()
    os._exit(0)


def _close_groups():
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    try:
        distributed.destroy_process_group()
    except Exception as error:  # the record is complete, and the program's own exit status counts
        sys.stderr.write(f"qlora-plan: the process group of the played rank would not close: {error!r}\n")


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
