"""Alignment of two event sequences in about linear time.

Both sides are walked together while their tokens agree. At a difference the nearest place where `window` tokens in a
row agree again is looked for, at most `reach` events ahead; that is the end of the difference. Sequences of the same
program differ in few places, so this finds what a full diff would, and stays fast at 60,000 events.
"""
import difflib


def differences(ours, theirs, window=6, reach=3000):
    """[(i0, i1, j0, j1)]: ours[i0:i1] stands where the other side has theirs[j0:j1]. Arguments are lists of tokens."""
    found, i, j = [], 0, 0
    while i < len(ours) or j < len(theirs):
        if i < len(ours) and j < len(theirs) and ours[i] == theirs[j]:
            i, j = i + 1, j + 1
            continue
        di, dj = resync(ours, theirs, i, j, window, reach)
        while di and dj and ours[i + di - 1] == theirs[j + dj - 1]:
            di, dj = di - 1, dj - 1
        found += finer(ours, theirs, i, i + di, j, j + dj)
        i, j = i + di, j + dj
    return found


def finer(ours, theirs, i0, i1, j0, j1, most=600):
    if i1 == i0 or j1 == j0 or max(i1 - i0, j1 - j0) > most:
        return [(i0, i1, j0, j1)]
    matcher = difflib.SequenceMatcher(None, ours[i0:i1], theirs[j0:j1], autojunk=False)
    return [(i0 + a, i0 + b, j0 + c, j0 + d) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]


def resync(ours, theirs, i, j, window, reach):
    """How far to skip on both sides, the sum being least, so that `window` tokens agree."""
    for size in (window, 3, 1):
        if (best := nearest_match(ours, theirs, i, j, size, reach)) is not None:
            return best
    return len(ours) - i if len(ours) - i <= reach else reach, len(theirs) - j if len(theirs) - j <= reach else reach


def nearest_match(ours, theirs, i, j, size, reach):
    positions = {}
    span = min(reach, 40) if size < 3 else reach
    for at in range(j, min(len(theirs) - size, j + span) + 1):
        positions.setdefault(tuple(theirs[at:at + size]), at - j)
    best = None
    for at in range(i, min(len(ours) - size, i + span) + 1):
        if best is not None and at - i >= best[0] + best[1]:
            break
        skip = positions.get(tuple(ours[at:at + size]))
        if skip is not None and (best is None or at - i + skip < best[0] + best[1]):
            best = (at - i, skip)
    # The very end of both is a match too.
    rest = (len(ours) - i, len(theirs) - j)
    if max(rest) <= span and (best is None or rest[0] + rest[1] < best[0] + best[1]):
        best = rest
    return best


def grouped(found, ours, theirs):
    """Equal differences (the same tokens on both sides: one per layer, say) together: [[difference, ...], ...]."""
    groups = {}
    for d in found:
        groups.setdefault((tuple(ours[d[0]:d[1]]), tuple(theirs[d[2]:d[3]])), []).append(d)
    return list(groups.values())
