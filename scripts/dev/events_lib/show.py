"""The three comparisons, printed."""
import collections

from . import align


def event_differences(ours, theirs, phases, limit, context, allocations_only, out):
    """Prints the first `limit` kinds of differences of each phase; returns how many differences there are."""
    total = 0
    for phase in phases:
        a, b = ours.phases.get(phase, []), theirs.phases.get(phase, [])
        if allocations_only:
            a, b = [e for e in a if e.allocates], [e for e in b if e.allocates]
        x, y = [e.token for e in a], [e.token for e in b]
        found = align.differences(x, y)
        total += len(found)
        extra, missing = sum(d[1] - d[0] for d in found), sum(d[3] - d[2] for d in found)
        out(f"== {phase}: {len(a)} events here, {len(b)} in the oracle; {len(found)} differences ({extra} only here, {missing} only there)")
        groups = align.grouped(found, x, y)
        for group in groups[:limit]:
            i0, i1, j0, j1 = group[0]
            times = f", {len(group)} times" if len(group) > 1 else ""
            out(f" @@ here event {i0} of the phase, oracle event {j0}{times}")
            for k in range(max(0, i0 - context), i0):
                out("      " + a[k].text(1) + "   ~ " + b[k - i0 + j0].name(1))
            listed(a[i0:i1], "  -   ", out)
            listed(b[j0:j1], "    + ", out)
            if i1 < len(a) and j1 < len(b):
                out("      " + a[i1].text(1) + "   ~ " + b[j1].name(1))
        if len(groups) > limit:
            out(f" ... {len(groups) - limit} more kinds of differences in this phase")
    return total


def listed(events, sign, out, most=24):
    for e in events[:most]:
        out(sign + e.text())
    if len(events) > most:
        out(f"{sign}... {len(events) - most} more")


def phase_table(ours, theirs, answer, out):
    """Peak and held bytes (requested) of each phase on both sides; returns how many figures differ."""
    mine, other = ours.peaks(), theirs.peaks()
    recorded = {p["phase"]: p for p in answer.get("phases", [])} if answer else {}
    out("%-18s %16s %16s %14s   %16s %16s %14s" % ("phase", "peak here", "oracle", "difference", "held here", "oracle", "difference"))
    differing = 0
    for phase in list(dict.fromkeys(list(other) + list(mine))):
        a, b = mine.get(phase), other.get(phase)
        if phase in recorded:
            b = [recorded[phase]["requested"], recorded[phase]["requested_now"]]
        cells = []
        for k in (0, 1):
            left, right = (a[k] if a else None), (b[k] if b else None)
            differing += left != right
            cells += [number(left), number(right), "" if left is None or right is None else signed(left - right)]
        out("%-18s %16s %16s %14s   %16s %16s %14s" % (phase, *cells))
    return differing


def number(value):
    return "-" if value is None else format(value, ",")


def signed(value):
    return "=" if value == 0 else format(value, "+,")


def peak_inventory(ours, theirs, phase, out, most=40):
    """What is alive at each side's peak (of the phase, or of training), matched by size; returns the unmatched count."""
    sides = []
    for name, sequence in (("here", ours), ("oracle", theirs)):
        peaks = sequence.peaks()
        training = {p: v for p, v in peaks.items() if p == phase or (phase is None and p not in ("start", "load", "adapter", "prepare", "after"))}
        if not training:
            out(f"{name}: no events in phase {phase or 'of training'}")
            return 1
        at = max(training, key=lambda p: training[p][0])
        out(f"{name}: peak {training[at][0]:,} requested in {at}, at event {training[at][2]}: {sequence.events[training[at][2]].text().strip()}")
        sides.append(sequence.alive_at(training[at][2]))
    left, right = (by_size(s) for s in sides)
    unmatched = 0
    for sign, mine, other in (("only here  ", left, right), ("only oracle", right, left)):
        groups = collections.Counter()
        for size, blocks in mine.items():
            surplus = len(blocks) - len(other.get(size, []))
            if surplus <= 0:
                continue
            unmatched += surplus
            names = collections.Counter(e.name(3) for e in blocks)
            there = collections.Counter(e.name(3) for e in other.get(size, []))
            groups[(size, surplus, len(blocks), tuple(names.most_common(4)), tuple(there.most_common(3)))] = size * surplus
        out(f"{sign}: {sum(k[1] for k in groups)} blocks, {sum(groups.values()):,} bytes")
        for (size, surplus, count, names, there), _ in groups.most_common(most):
            out(f"  {surplus} x {size:,} (of {count} of that size)")
            for name, n in names:
                out(f"        {n} x {name}")
            if there:
                out("      other side has: " + "; ".join(f"{n} x {name}" for name, n in there))
    return unmatched


def by_size(events):
    groups = collections.defaultdict(list)
    for e in events:
        groups[e.size].append(e)
    return groups


def allocation_counts(ours, theirs, phases, out, most=20):
    """Per phase the multiset of allocation sizes, order ignored; returns the number of sizes that differ in count."""
    differing = 0
    for phase in phases:
        left = by_size(e for e in ours.phases.get(phase, []) if e.allocates)
        right = by_size(e for e in theirs.phases.get(phase, []) if e.allocates)
        rows = [(len(left.get(s, [])) - len(right.get(s, [])), s) for s in set(left) | set(right)]
        rows = sorted((r for r in rows if r[0]), key=lambda r: -abs(r[0] * r[1]))
        differing += len(rows)
        out(f"== {phase}: {len(rows)} sizes with another count")
        for surplus, size in rows[:most]:
            out(f"  {surplus:+d} x {size:,}  ({len(left.get(size, []))} here, {len(right.get(size, []))} oracle)")
            for sign, blocks in (("-", left.get(size, [])), ("+", right.get(size, []))):
                names = collections.Counter(e.name(3) for e in blocks)
                for name, n in names.most_common(4):
                    out(f"      {sign} {n} x {name}")
    return differing
