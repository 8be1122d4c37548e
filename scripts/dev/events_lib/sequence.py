"""An event sequence from a CSV, split into phases, with what is alive when."""
import collections
import csv


class Event:
    __slots__ = ("allocates", "size", "stream", "op", "place", "by", "index", "end")

    def __init__(self, allocates, size, stream, op, place, by, index):
        self.allocates, self.size, self.stream, self.op, self.place, self.by, self.index = allocates, size, stream, op, place, by, index
        self.end = None  # of an allocation: the index of its free

    @property
    def token(self):
        return self.size if self.allocates else -self.size - 1

    def name(self, frames=2):
        """Operator or op, then module or the innermost Python lines."""
        lines = [x.removeprefix("transformers/models/") for x in self.place.split(" < ")]
        return "  ".join(x for x in (self.op, " < ".join(lines[:frames])) if x) or "?"

    def text(self, frames=2):
        where = "  [at " + " < ".join(self.by.split(" < ")[:2]) + "]" if self.by else ""
        return "%-5s %14s  s%s  %s%s" % ("alloc" if self.allocates else "free", format(self.size, ","), self.stream, self.name(frames), where)


class Sequence:
    """phases: name -> list of Event, in the order of the file. Segment lines and free_completed are left out."""

    def __init__(self, path):
        self.phases = collections.OrderedDict()
        self.events = []
        self.named = []
        by_key = collections.defaultdict(collections.deque)
        with open(path, newline="") as f:
            for row in csv.DictReader(f):
                action = row["action"]
                if action not in ("alloc", "free_requested", "free"):
                    continue
                event = Event(action == "alloc", int(row["size"]), row.get("stream", ""), row.get("op") or "", row.get("module") or "",
                              row.get("by") or "", len(self.events))
                key = row.get("address") or row.get("block") or (event.size, event.op, event.place)
                if event.allocates:
                    by_key[key].append(event)
                elif by_key[key]:
                    by_key[key].pop().end = event.index
                self.events.append(event)
                self.named.append(row["phase"])
                self.phases.setdefault(row["phase"], []).append(event)

    def peaks(self):
        """phase -> (peak since the last phase, held at its end, index of the event that makes the peak), requested bytes."""
        total, answer, current = 0, collections.OrderedDict(), None
        for event, phase in zip(self.events, self.named):
            if phase != current:
                current = phase
                answer[phase] = [total, total, max(event.index - 1, 0)]
            total += event.size if event.allocates else -event.size
            row = answer[phase]
            row[1] = total
            if total > row[0]:
                row[0], row[2] = total, event.index
        return answer

    def alive_at(self, index):
        return [e for e in self.events[: index + 1] if e.allocates and (e.end is None or e.end > index)]
