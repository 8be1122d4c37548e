"""Whether a line of the program is asked again and again because it waits for another answer.

A `while` goes round until it hears what it waits for; a `for` that asks of every layer, expert or batch ends by itself,
and takes many times as long to be taken for one that does not. Which of them is the innermost around a place tells the
bytecode.
"""
import dis
import sys

_OF_A_FOR = 20  # how much more often a `for` may ask

_loops = {}  # code -> [(first offset, last offset, whether it is a `for`)], inner ones first


class Rounds:
    """How often each place has asked since the phase began."""

    def __init__(self):
        self._asked = {}

    def clear(self):
        self._asked.clear()

    def is_stuck(self, place, patience):
        asked = self._asked[place] = self._asked.get(place, 0) + 1
        return asked > patience and asked > (patience * _OF_A_FOR if _within_a_for(sys._getframe(1)) else patience)


def _within_a_for(frame):
    """Whether the innermost loop around what runs is a `for`, in whichever function."""
    while frame is not None:
        for first, last, is_for in _loops_of(frame.f_code):
            if first <= frame.f_lasti <= last:
                return is_for
        frame = frame.f_back
    return False


def _loops_of(code):
    """A jump back closes a loop; that of a `for` goes to where it takes its next element."""
    found = _loops.get(code)
    if found is None:
        instructions = list(dis.get_instructions(code))
        jumps = set(dis.hasjrel) | set(dis.hasjabs)
        ends = {one.argval: one.offset for one in instructions if one.opcode in jumps and one.argval <= one.offset}
        heads = {one.offset: one.opname for one in instructions if one.offset in ends}
        found = [(head, ends[head], heads[head].startswith("FOR_ITER")) for head in sorted(ends, reverse=True)]
        _loops[code] = found
    return found
