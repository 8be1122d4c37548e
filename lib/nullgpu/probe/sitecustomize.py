"""Starts the probe in every Python process of a traced program; this folder comes first on its PYTHONPATH.

Whatever sitecustomize the environment has of its own is run as well, as if this one were not there.
"""
import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _run_shadowed():
    path = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("QLORA_PLAN_TRACE"):
    try:
        import qlora_plan_probe

        qlora_plan_probe.start()
    except Exception as error:  # a probe that fails must not take the program with it unheard
        sys.stderr.write(f"qlora-plan: the probe could not start: {error!r}\n")
_run_shadowed()
