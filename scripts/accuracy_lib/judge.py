"""One case or row: from the file to rows of the table."""
import csv
import json

from . import jobs, measured, tool
from .summary import Row


class Outcome:
    """rows of the table; or a group (`out of scope`, `unexpressed`) and a reason. note: why the tool refuses the job;
    missing: phases of the file that the report does not have."""

    def __init__(self, id, rows=(), group=None, reason=None, note=None, missing=()):
        self.id, self.rows, self.group, self.reason, self.note, self.missing = id, list(rows), group, reason, note, list(missing)


def read(path):
    """[record]: a dict with `case` (a line of oracle/*.jsonl) or a row of measured.csv, told apart by what is in the file."""
    with open(path, newline="") as f:
        start = f.read(4096).lstrip()
        f.seek(0)
        if start.startswith("{"):
            return [json.loads(line) for line in f if line.strip()]
        return list(csv.DictReader(f))


def identity(record):
    case = record.get("case", record)
    return (case.get("id") if isinstance(case, dict) else None) or "unnamed"


def judge(record, number, setting):
    """The Outcome of a record. setting: .binary, .shared, .keep (a folder or None)."""
    id = identity(record)
    try:
        if "case" in record:
            return judge_case(record, id, keep_path(setting, number, id), setting)
        return judge_row(record, id, keep_path(setting, number, id), setting)
    except jobs.Unexpressed as e:
        return Outcome(id, group="unexpressed", reason=str(e))
    except tool.Failed as e:
        return Outcome(id, group="unexpressed", reason=f"qlora-plan failed: {e}")
    except (LookupError, ValueError, TypeError, AttributeError) as e:
        return Outcome(id, group="unexpressed", reason=f"not understood: {type(e).__name__} {e}")


def keep_path(setting, number, id):
    if not setting.keep:
        return None
    return f"{setting.keep}/{number:04d}-{''.join(c if c.isalnum() or c in '-._' else '_' for c in id)}.yaml"


def judge_row(row, id, keep, setting):
    job = measured.from_row(row, setting.shared)
    values = measured.measured_values(row)
    try:
        answer = tool.Answer(tool.estimate(setting.binary, job.yaml(), keep=keep), job.rank)
    except tool.Refused as e:
        return Outcome(id, group="unexpressed", reason=f"refused: {e}")
    rows = []
    for metric, expected in values:
        predicted = held(answer, "allocated") if metric == "end_allocated" else answer.training_peak(metric.removeprefix("peak_"), False)
        rows.append(Row(id, row["stack"], row["sharding"], row["method"], metric, predicted, expected))
    return Outcome(id, rows)


def judge_case(record, id, keep, setting):
    case = record["case"]
    stack = record.get("stack", "2025-10")
    if stack not in jobs.STACKS and not record.get("versions"):
        raise jobs.Unexpressed(f"unknown stack {stack}")
    versions = dict(jobs.STACKS.get(stack, {}), **(record.get("versions") or {}))
    plan, method = case.get("plan", "single"), jobs.method_of(case)
    job = jobs.from_case(case, versions, setting.shared)
    boundary = "runs_with_bytes" in record
    options = ["--required"] if boundary else []
    refused_there = int("error" in record)

    def row(metric, predicted, expected):
        return Row(id, stack, plan, method, metric, predicted, expected)

    try:
        answer = tool.Answer(tool.estimate(setting.binary, job.yaml(), options, keep, rank=job.rank), job.rank)
        answer = limited_to_device(answer, job, options, setting)
    except tool.Refused as e:
        if job.scope:
            return Outcome(id, group="out of scope", reason=job.scope)
        return Outcome(id, [row("refused", 1, refused_there)], note=str(e))
    refused = int(not answer.fits)
    rows = [row("refused", refused, refused_there)]
    if not refused_there:
        rows += case_rows(record, job, answer, row)
    if boundary:
        required = answer.required_reserved()
        if required is None:
            raise tool.Failed("no required_reserved_bytes in the report")
        rows.append(row("required_reserved", required, record["runs_with_bytes"]))
    missing = [p["phase"] for p in record.get("phases", []) if p["phase"] not in answer.phases()]
    return Outcome(id, rows, note="does not fit" if refused else None, missing=missing)


def limited_to_device(answer, job, options, setting):
    """The null GPU takes nothing beside the allocator. Where the tool's own terms made the difference, ask again with
    as much more memory."""
    if answer.fits and answer.device_used_bytes() <= job.limit:
        return answer
    return tool.Answer(tool.estimate(setting.binary, job.yaml(job.limit + answer.outside_bytes()), options, rank=job.rank), job.rank)


def case_rows(record, job, answer, row):
    rows = []
    for figure in tool.FIGURES:
        predicted = answer.training_peak(figure, job.lazy)
        if figure in ("active", "reserved"):
            predicted = min(predicted, max(job.limit, answer.training_peak("allocated", False)))  # no run reserves more than there is
        rows.append(row("peak_" + figure, predicted, record["peak"][figure]))
    phases = record.get("phases", [])
    end = next((p for p in phases if p["phase"] == "end"), None)
    if end:
        rows += [row("end_" + figure, held(answer, figure), end[figure + "_now"]) for figure in ("requested", "allocated")]
    ours = answer.phases()
    for phase in phases:
        name = phase["phase"]
        if name not in ours:
            continue
        if name == "prepare" and job.plan.startswith("zero"):
            # DeepSpeed resets PyTorch's peaks while it prepares (runtime/utils.py, see_memory_usage, on rank 0).
            rows.append(row("phase:" + name, tool.value(ours[name]["held"], "allocated", False), phase["allocated_now"]))
            continue
        rows.append(row("phase:" + name, tool.value(ours[name]["peak"], "allocated", False), phase["allocated"]))
    return rows


def held(answer, figure):
    phases = answer.phases()
    if "end" not in phases:
        raise tool.Failed("the report has no phase end")
    return tool.value(phases["end"]["held"], figure, False)
