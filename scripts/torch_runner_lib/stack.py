"""The libraries: which versions there are, and which the job was planned for."""

import importlib.metadata

from .section import Refused


def installed(names):
    versions = {}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name).split("+")[0]
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def check(stack, needed, any_stack):
    """Other versions keep other tensors: refused unless asked for. Returns what is installed."""
    wanted = {name: stack.take(name) for name in ("torch", "transformers", "peft", "accelerate", "bitsandbytes", "deepspeed")}
    stack.finish()
    there = installed(wanted)
    missing = [name for name in needed if there[name] is None]
    if missing:
        raise Refused(f"not installed here: {', '.join(missing)} (qlora-plan env create makes an environment)")
    other = [f"{name} {there[name]} in place of {wanted[name]}" for name in needed if there[name] != wanted[name]]
    if other and not any_stack:
        raise Refused("the job's stack is another one: " + ", ".join(other) + " (--any-stack runs it all the same)")
    return {name: version for name, version in there.items() if version}
