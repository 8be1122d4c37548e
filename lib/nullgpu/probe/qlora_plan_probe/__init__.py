"""The probe of `qlora-plan trace`: records what a Python training program takes of the null GPU, phase by phase.

No dependency but the torch of the program itself (2.1 or newer, Python 3.9 or newer); torch is touched only once the
program has imported it. What is recorded goes to one file for each process (record.py).
"""
from . import request


def start():
    """Called while the interpreter starts; nothing of the program has run."""
    asked = request.read()
    from . import record, torch_hooks

    recorder = record.Recorder(asked)
    torch_hooks.install(asked, recorder)
