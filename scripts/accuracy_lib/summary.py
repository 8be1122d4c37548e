"""The summary below the table."""
import collections
import math


class Row:
    __slots__ = ("id", "stack", "plan", "method", "metric", "predicted", "measured")

    def __init__(self, id, stack, plan, method, metric, predicted, measured):
        self.id, self.stack, self.plan, self.method, self.metric = id, stack, plan, method, metric
        self.predicted, self.measured = predicted, measured

    @property
    def error(self):
        """Percent of the measured value; None where that is 0."""
        return None if self.measured == 0 else 100.0 * (self.predicted - self.measured) / self.measured

    def differs(self, percent):
        """By more than so many percent of the measured value."""
        return abs(self.predicted - self.measured) > abs(self.measured) * percent / 100

    def cells(self):
        error = self.error
        return [self.id, self.stack, self.plan, self.method, self.metric, self.predicted, self.measured, "" if error is None else f"{error:.6f}"]


def percentile(ordered, share):
    """Linear between the neighbours, as numpy's default."""
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    return ordered[low] + (at - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def describe(errors):
    """[cases, mean, median, 95th percentile, worst of the absolute errors, bias]"""
    absolute = sorted(abs(e) for e in errors)
    return [len(absolute), *(f"{x:.4f}" for x in (math.fsum(absolute) / len(absolute), percentile(absolute, 0.5), percentile(absolute, 0.95),
                                                absolute[-1], math.fsum(errors) / len(errors)))]


def table(rows):
    """[[metric, stack, method, plan, cases, mean, ...]]: first every metric over all, then by stack, method and plan."""
    overall, groups = collections.defaultdict(list), collections.defaultdict(list)
    for row in rows:
        if row.metric == "refused" or row.error is None:
            continue
        metric = "phase:*" if row.metric.startswith("phase:") else row.metric
        overall[metric].append(row.error)
        groups[(metric, row.stack, row.method, row.plan)].append(row.error)
    lines = [[metric, "all", "all", "all", *describe(errors)] for metric, errors in overall.items()]
    order = {metric: i for i, metric in enumerate(overall)}
    for key in sorted(groups, key=lambda k: (order[k[0]], k)):
        lines.append([*key, *describe(groups[key])])
    return lines


def exactness(rows):
    """Lines about what is asked to be equal or within a number of bytes, not a share."""
    lines = []
    for metric in ("peak_requested", "end_requested"):
        chosen = [r for r in rows if r.metric == metric]
        if chosen:
            equal = sum(r.predicted == r.measured for r in chosen)
            near = sum(abs(r.predicted - r.measured) <= 65536 for r in chosen)
            lines.append(f"{metric}: {equal} of {len(chosen)} equal to the byte, {near} within 64 KiB")
    refused = [r for r in rows if r.metric == "refused"]
    if refused:
        right = sum(r.predicted == r.measured for r in refused)
        lines.append(f"refused: {right} of {len(refused)} as measured; "
                     f"{sum(r.predicted > r.measured for r in refused)} refused that run, "
                     f"{sum(r.predicted < r.measured for r in refused)} planned that the libraries refuse")
    return lines
