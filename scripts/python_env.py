#!/usr/bin/env python3
"""Python environments with the libraries of a stack in pinned versions: what `qlora-plan env` runs.

    python_env.py create STACK [DIR] [--require REQUIREMENT]...   a named stack, or one of the given requirements
    python_env.py list
    python_env.py find --require REQUIREMENT...                   the interpreter of an environment that has all of them

Environments are made under $QLORA_PLAN_ENVS, else $XDG_DATA_HOME/qlora-plan/envs, else ~/.local/share/qlora-plan/envs.
Making one that is there does nothing; one that was interrupted is made to its end. stdout has the result alone.
Exit status: 0 done, 1 there is none (find), 2 usage, 3 it cannot be made here.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# The stacks that the program is judged with (README.md).
STACKS = {
    "2025-01": ["torch==2.4.1", "transformers==4.48.1", "peft==0.13.2", "accelerate==1.0.1", "bitsandbytes==0.43.3",
                "trl==0.13.0", "datasets==3.2.0", "numpy<2", "pyarrow<19", "setuptools"],
    "2025-10": ["torch==2.8.0", "transformers==4.57.1", "peft==0.18.0", "accelerate==1.15.0", "bitsandbytes==0.50.2",
                "deepspeed==0.18.3", "liger-kernel==0.6.2", "numpy", "setuptools"],
    "2026-11": ["torch==2.14.1", "transformers==5.24.0", "peft==0.21.2", "accelerate==1.15.0", "bitsandbytes==0.50.2",
                "trl==1.16.0", "liger-kernel==0.8.5", "numpy", "setuptools"],
}
MANIFEST = "qlora-plan-env.json"
BEGUN = "qlora-plan-env.begun"  # ours, not whole yet
NEEDED = 9 << 30  # what torch with CUDA's libraries takes, and pip on the way

# What pip says where it fails, and what that means.
FAILURES = [
    (r"No space left on device", "the disk is full"),
    (r"Temporary failure in name resolution|Name or service not known|Network is unreachable|NewConnectionError|"
     r"ConnectTimeoutError|Connection refused|ProxyError|SSLError", "the package index cannot be reached"),
    (r"No matching distribution found for ([^\s]+)", "the package index has no {0} for Python {python}"),
    (r"ResolutionImpossible|conflicting dependencies", "the versions exclude each other"),
    (r"Permission denied", "it may not write there"),
]


class Failed(Exception):
    """It cannot be done here; the message says why."""


def envs_root():
    if os.environ.get("QLORA_PLAN_ENVS"):
        return Path(os.environ["QLORA_PLAN_ENVS"])
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(data, "qlora-plan", "envs")


def manifest_of(folder):
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return manifest if (folder / "bin" / "python").exists() else None
    except (OSError, ValueError):
        return None


def existing():
    """(folder, manifest) of every environment that is whole."""
    root = envs_root()
    folders = sorted(root.iterdir()) if root.is_dir() else []
    return [(folder, manifest) for folder in folders if (manifest := manifest_of(folder))]


def say(text):
    print(f"env: {text}", file=sys.stderr, flush=True)


def check_folder(folder):
    if folder.exists() and not folder.is_dir():
        raise Failed(f"{folder} exists and is no folder")
    ours = (folder / BEGUN).exists() or (folder / MANIFEST).exists()
    if folder.is_dir() and any(folder.iterdir()) and not ours:
        raise Failed(f"{folder} holds files that are not an environment of ours")


def check_room(folder):
    place = folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < NEEDED:
        raise Failed(f"{place} has {free / 2**30:.1f} GiB left, and an environment takes about {NEEDED / 2**30:.0f}")


def run(command, what):
    """Runs a step; its output is shown only where it fails, with what it means."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return
    sys.stderr.write("".join(done.stdout.splitlines(keepends=True)[-15:]))
    raise Failed(f"{what} failed: {meaning(done.stdout)}")


def meaning(output):
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    for pattern, text in FAILURES:
        found = re.search(pattern, output)
        if found:
            return text.format(*found.groups(), python=python)
    return "its last lines are above"


def make_venv(folder):
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as error:
        raise Failed(f"{sys.executable} has no module {error.name}: install python3-venv") from error
    run([sys.executable, "-m", "venv", str(folder)], "making the environment")


def installed_versions(folder):
    """Of everything, as pip counts it."""
    listing = subprocess.run([str(folder / "bin" / "python"), "-m", "pip", "list", "--format=json", "--disable-pip-version-check"],
                             capture_output=True, text=True, check=True)
    return {row["name"].lower(): row["version"] for row in json.loads(listing.stdout)}


def create(name, folder, requirements):
    known = manifest_of(folder)
    if known and known["requirements"] == requirements:
        say(f"{folder} is there already")
        return known
    check_folder(folder)
    check_room(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / BEGUN).touch()
        (folder / MANIFEST).unlink(missing_ok=True)
    except OSError as error:
        raise Failed(f"cannot write {folder}: {error.strerror}") from error
    if not (folder / "bin" / "python").exists():
        make_venv(folder)
    say(f"installing {' '.join(requirements)}: some minutes and gigabytes")
    run([str(folder / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *requirements],
        "installing")
    versions = installed_versions(folder)
    manifest = {"name": name, "python": str(folder / "bin" / "python"), "requirements": requirements, "versions": versions}
    temporary = folder / (MANIFEST + ".new")
    temporary.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    temporary.replace(folder / MANIFEST)
    (folder / BEGUN).unlink()
    return manifest


def requirements_of(name, given):
    if given:
        return [*given, "numpy", "setuptools"]
    if name not in STACKS:
        raise Failed(f"no stack is called {name}: there are {', '.join(STACKS)}, and those of job files")
    return STACKS[name]


def has_all(manifest, requirements):
    pins = [requirement.split("==") for requirement in requirements]
    return all(manifest["versions"].get(name, "").split("+")[0] == version for name, version in pins)


def lines(asked, rows):
    if asked.json:
        return json.dumps(rows, indent=2) + "\n"
    text = "".join(f"{row['name']:<20} {row['python']}\n" for row in rows)
    named = [name for name in STACKS if name not in {row["name"] for row in rows}]
    return text + "".join(f"{name:<20} not made: {' '.join(STACKS[name][:5])}\n" for name in named)


def main():
    parser = argparse.ArgumentParser(description="Python environments with pinned libraries.")
    parser.add_argument("action", choices=("create", "list", "find"))
    parser.add_argument("stack", nargs="?")
    parser.add_argument("directory", nargs="?")
    parser.add_argument("--require", action="append", default=[])
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.action == "list":
        sys.stdout.write(lines(asked, [manifest for _, manifest in existing()]))
        return 0
    if asked.action == "find":
        for _, manifest in existing():
            if has_all(manifest, asked.require):
                print(manifest["python"])
                return 0
        return 1
    if not asked.stack:
        parser.error("create needs the name of a stack")
    try:
        requirements = requirements_of(asked.stack, asked.require)
        folder = Path(asked.directory).absolute() if asked.directory else envs_root() / asked.stack
        manifest = create(asked.stack, folder, requirements)
    except Failed as error:
        say(error)
        return 2 if "no stack is called" in str(error) else 3
    sys.stdout.write(json.dumps(manifest, indent=2) + "\n" if asked.json else manifest["python"] + "\n")
    return 0


sys.exit(main())
