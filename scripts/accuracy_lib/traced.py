"""A recorded case run again under `qlora-plan trace`: the program that made the records, unchanged, on our null GPU."""
import json
import os
import re
import subprocess
import tempfile

from . import jobs, tool
from .summary import Row

FIGURES = tool.FIGURES
STATUS_RAN, STATUS_OUT_OF_MEMORY, STATUS_FAILED = 0, 1, 3


class Setting:
    """binary; shared: folder of the records, with oracle/run_case.py in it; environments: one Python environment a stack
    (STACK/venv); overlays: packages in other versions than the stack's are installed there; timeout in seconds."""

    def __init__(self, binary, shared, environments, overlays, timeout):
        self.binary, self.shared, self.environments = binary, shared, environments
        self.overlays, self.timeout = overlays, timeout
        self.outside = {}  # (GPU, ranks) -> bytes that trace takes off the GPU beside the allocator


class Run:
    """status of `trace`; report: its JSON; answer: what the program itself wrote, None where it did not come to that."""

    def __init__(self, status, report, answer, stderr):
        self.status, self.report, self.answer, self.stderr = status, report, answer, stderr

    @property
    def message(self):
        return self.report.get("trace", {}).get("message", "") if self.report else self.stderr[-400:]


def judge(record, setting):
    """([Row], [what is worth a line]) of a record."""
    case = record["case"]
    if "runs_with_bytes" in record:
        return judge_boundary(record, setting)
    run = trace(record, limit_of(case), setting)
    rows = [row_of(record, "refused", int(run.status != STATUS_RAN), int("error" in record))]
    if run.status != STATUS_RAN or "error" in record:
        return rows, ended_otherwise(record, run)
    return rows + figures(record, run), []


def judge_boundary(record, setting):
    """The least memory with which it ran, and the most with which it did not: both sides again, and without a limit."""
    free = trace(record, limit_of(record["case"]), setting)
    rows, notes = [row_of(record, "refused", int(free.status != STATUS_RAN), 0)], []
    if free.status == STATUS_RAN:
        rows += figures(record | {"device_peak": record["device_peak_unlimited"]}, free)
    for field, expected in (("runs_with_bytes", STATUS_RAN), ("fails_with_bytes", STATUS_OUT_OF_MEMORY)):
        run = trace(record, record[field], setting)
        rows.append(row_of(record, field, run.status, expected))
        if run.status != expected:
            notes.append(f"{record['case']['id']} with {record[field]} bytes: exit status {run.status}: {run.message}")
        elif expected == STATUS_RAN:
            rows.append(row_of(record, "retries", max(p["retries"] for p in run.answer["phases"]), record["retries"]))
    return rows, notes


def limit_of(case):
    return int(case.get("alloc_env", {}).get("NULLGPU_BYTES", jobs.DEVICE_BYTES))


def row_of(record, metric, traced, recorded):
    case = record["case"]
    return Row(case["id"], record["stack"], case.get("plan", "single"), jobs.method_of(case), metric, traced, recorded)


def figures(record, run):
    """What the program counted, beside the record and beside what the probe counted."""
    rows = [row_of(record, f"peak_{kind}", run.answer["peak"][kind], record["peak"][kind])
            for kind in FIGURES if kind in record["peak"]]
    for field in ("end_allocated", "device_peak"):
        if field in record:
            rows.append(row_of(record, field, run.answer[field], record[field]))
    mine = {phase["phase"]: phase for phase in run.answer["phases"]}
    for phase in record.get("phases", []):
        rows.append(row_of(record, "phase:" + phase["phase"], mine[phase["phase"]]["allocated"], phase["allocated"]))
    probe = run.report["trace"]["ranks"][0]["training_peak"]
    rows += [row_of(record, f"probe_{kind}", probe[f"{kind}_bytes"], run.answer["peak"][kind]) for kind in FIGURES]
    return rows


def ended_otherwise(record, run):
    """Refusals are compared by their words; addresses and times aside, they are the same."""
    id, recorded = record["case"]["id"], record.get("error")
    if recorded is None:
        return [f"{id}: ran in the record; exit status {run.status}: {run.message}"]
    if run.status == STATUS_RAN:
        return [f"{id}: runs; in the record: {recorded[:200]}"]
    words = recorded.splitlines()[0].split(": ", 1)[-1].strip()
    return [] if words[:60] in run.message else [f"{id}: another refusal: {run.message[:300]!r}; in the record: {words[:300]!r}"]


# ---- running ---------------------------------------------------------------------------------------------------------
def trace(record, limit, setting):
    """The case on a GPU of `limit` bytes, of which nothing is taken before the program begins."""
    case = dict(record["case"])
    variables = dict(case.pop("alloc_env", {}))
    gpu = jobs.GPUS[variables.pop("NULLGPU_SM", "80")]
    variables.pop("NULLGPU_BYTES", None)
    lazy = {"NULLGPU_LAZY_EVENTS": variables.pop("NULLGPU_LAZY_EVENTS", "0")}
    if variables:
        case["alloc_env"] = variables
    ranks = case.get("world", 1)
    python = os.path.join(setting.environments, record["stack"], "venv", "bin", "python")
    environment = os.environ | lazy | overlay(python, record.get("versions", {}), setting)
    options = ["--gpu", gpu, "--margin", "0", "--gpus", str(min(ranks, 8))]
    if ranks > 1:
        options += ["--world-size", str(ranks), "--rank", str(case.get("rank", 0))]
    limit += outside(python, gpu, ranks, options, setting)
    with tempfile.TemporaryDirectory(prefix="traced-") as folder:
        if record.get("as_saved"):
            case |= {"config": saved_checkpoint(case, python, folder, setting), "overrides": {}}
        case_file, answer_file = os.path.join(folder, "case.json"), os.path.join(folder, "answer.json")
        with open(case_file, "w") as f:
            json.dump(case, f)
        program = [python, os.path.join(setting.shared, "oracle", "run_case.py"), case_file, answer_file]
        status, report, stderr = run(options + ["--memory", f"{limit}B"], program, environment | {"TMPDIR": folder}, setting)
        answer = None
        if os.path.exists(answer_file):
            with open(answer_file) as f:
                answer = json.load(f)
        if status == STATUS_RAN and answer is None:
            raise tool.Failed("it ran, and the program wrote no answer")
        return Run(status, report, answer, stderr)


def saved_checkpoint(case, python, folder, setting):
    """A checkpoint as save_pretrained writes one: the tensors of a file lie in the order of their names, in which they are
    loaded, and that decides what is left over in the allocator's blocks. run_case.py's own lie in the model's order."""
    config, out = os.path.join(folder, "model.json"), os.path.join(folder, "model")
    with open(case["config"]) as source, open(config, "w") as f:
        json.dump(json.load(source) | case["overrides"], f)
    words = ["sparse-weights", "-q", f"--from-python={python}", "--dtype", case["dtype"], config, out]
    done = subprocess.run([setting.binary, *words], capture_output=True, text=True, timeout=setting.timeout)
    if done.returncode:
        raise tool.Failed(f"no checkpoint: {done.stderr[-400:]}")
    return out


def run(options, program, environment, setting):
    command = [setting.binary, "trace", "-q", "--json", *options, "--", *program]
    try:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=setting.timeout, errors="replace")
    except subprocess.TimeoutExpired:
        raise tool.Failed(f"no answer within {setting.timeout} s")
    if done.returncode not in (STATUS_RAN, STATUS_OUT_OF_MEMORY, STATUS_FAILED):
        raise tool.Failed(f"exit status {done.returncode}: {done.stderr[-400:]}")
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def outside(python, gpu, ranks, options, setting):
    """What trace takes off for the context and libraries: the records were made with nothing taken."""
    if (gpu, ranks) not in setting.outside:
        program = [python, "-c", "import torch; torch.zeros(1, device='cuda')"]
        _, report, stderr = run(options, program, dict(os.environ), setting)
        if not report:
            raise tool.Failed(stderr[-400:])
        setting.outside[gpu, ranks] = sum(term["device_bytes"] for term in report["trace"]["outside"])
    return setting.outside[gpu, ranks]


def overlay(python, versions, setting):
    """{PYTHONPATH} with the packages that the environment has in another version than the record."""
    names = {"transformers", "peft", "accelerate", "bitsandbytes"} & set(versions)
    look = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
    there = json.loads(subprocess.run([python, "-c", look, *names], capture_output=True, text=True, check=True).stdout)
    other = sorted(f"{name}=={versions[name]}" for name in names if there[name] != versions[name])
    if not other:
        return {}
    folder = os.path.join(setting.overlays, re.sub(r"[^\w.=-]", "_", "+".join(other)))
    if not os.path.exists(folder):
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, *other], check=True,
                       stdout=subprocess.DEVNULL)
    return {"PYTHONPATH": folder}
