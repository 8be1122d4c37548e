"""Running qlora-plan and reading its report."""
import json
import os
import subprocess
import sys
import tempfile

FIGURES = ("requested", "allocated", "active", "reserved")


class Failed(Exception):
    """The program crashed, hung or answered something that is no report."""


class Refused(Exception):
    """The program says that it cannot plan this job."""


def find_binary(given, root):
    """--binary, or the release build, made by scripts/run where it is missing."""
    if given:
        return os.path.abspath(given)
    binary = os.path.join(root, "build", "release", "bin", "qlora-plan")
    if not os.path.exists(binary):
        done = subprocess.run([os.path.join(root, "scripts", "run"), "--version"], stdout=sys.stderr)
        if done.returncode != 0 or not os.path.exists(binary):
            sys.exit("qlora-plan could not be built")
    return binary


def estimate(binary, text, options=(), keep=None, timeout=300, rank=0):
    """The report of a job file given as text, with this rank of its only plan; raises Refused or Failed."""
    command = ["explain", f"--rank={rank}"] if rank else ["estimate"]
    with tempfile.TemporaryDirectory(prefix="accuracy-") as folder:
        path = keep or os.path.join(folder, "job.yaml")
        with open(path, "w") as f:
            f.write(text)
        try:
            done = subprocess.run([binary, *command, *options, "--json=-", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, timeout=timeout, errors="replace")
        except subprocess.TimeoutExpired:
            raise Failed(f"no answer within {timeout} s")
        except OSError as e:
            raise Failed(str(e))
    if done.returncode == 2:
        raise Refused(first_line(done.stderr))
    if done.returncode not in (0, 1):
        raise Failed(f"exit code {done.returncode}: {first_line(done.stderr)}")
    try:
        report = json.loads(done.stdout)
    except ValueError as e:
        raise Failed(f"no JSON: {e}")
    if not isinstance(report, dict):
        raise Failed("no report")
    return report


def first_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else "nothing said")


class Answer:
    """The only plan of a report, for one rank."""

    def __init__(self, report, rank):
        plans = report.get("plans", [])
        if len(plans) != 1:
            raise Failed(f"{len(plans)} plans in the report")
        self.plan = plans[0]
        if not self.plan.get("applicable", False):
            raise Refused(self.plan.get("reason", "not applicable"))
        ranks = {r.get("rank"): r for r in self.plan.get("ranks", [])}
        self.ledger = dict(self.plan, **ranks.get(rank, {}))

    @property
    def fits(self):
        return bool(self.plan.get("fits"))

    def training_peak(self, figure, slowest):
        return value(self.ledger["training_peak"], figure, slowest)

    def outside_bytes(self):
        """What the tool adds to the allocator's segments: context, NCCL, libraries."""
        peak = self.ledger["peak"]
        return peak["device_used_bytes"] - value(peak, "reserved", False)

    def device_used_bytes(self):
        return self.ledger["peak"]["device_used_bytes"]

    def required_reserved(self):
        return self.ledger["peak"].get("required_reserved_bytes")

    def phases(self):
        """{name: phase} where a phase has `peak` and `held`, in the tool's field names."""
        return {p["name"]: p for p in self.ledger.get("phases", [])}


def value(figures, name, slowest):
    """A figure; where it depends on how far the GPU lags, the greatest (slowest) or the figure itself."""
    span = figures.get(name)
    if slowest and isinstance(span, dict) and "max" in span:
        return span["max"]
    return figures[name + "_bytes"]
