"""The probe of `qlora-plan trace`: records what a Python training program takes of the null GPU, phase by phase.

No dependency but the torch of the program itself (2.1 or newer, Python 3.9 or newer); torch is touched only once the
program has imported it. What is recorded goes to one file for each process (record.py).
"""
import re

from . import request

_KINDS = {"optimizer": "optimizer_step", "out_of_memory": "end"}  # of phases whose name says it in another way
_divided = []  # phases.Phases, once there is torch


def own_phases():
    """For programs that know their phases: ends the probe's own division of the run. The function that is returned is to
    be called at each phase's end with its name: "load", "micro2.backward", "step1.optimizer", ..."""
    for phases in _divided:
        phases.divides = False
    return _mark


def _mark(name):
    kind = re.sub(r"^\w+\d+\.", "", name)
    for phases in _divided:
        phases.record(name, _KINDS.get(kind, kind))


def start():
    """Called while the interpreter starts; nothing of the program has run."""
    asked = request.read()
    from . import record, torch_hooks

    recorder = record.Recorder(asked)
    torch_hooks.install(asked, recorder)
