"""To whom the known bytes of the device belong.

A block that the allocator hands out again holds what its last owner left there, and a kernel that writes to it is not
seen. So the storages of which values are known are remembered by weak references, and what lies where one of them was
is forgotten before another's values are looked at or put there. (PyTorch's own hook of allocations is no use: it runs
Python code while tensors go down with an exception that is on its way, and loses that exception;
torch/csrc/PyInterpreter.cpp, 2.1 to 2.14.)
"""
import bisect

from torch.multiprocessing.reductions import StorageWeakRef

from . import library


class Owner:
    def __init__(self, storage):
        self.begin = storage.data_ptr()
        self.end = self.begin + storage.nbytes()
        self.uniform = None  # of a large one: what all of its elements are
        self._reference = StorageWeakRef(storage)  # no other gets its address while this lives

    def is_gone(self):
        return self._reference.expired()

    def is_of(self, storage):
        return self._reference.cdata == storage._cdata and self.end == storage.data_ptr() + storage.nbytes()


class Owners:
    def __init__(self):
        self._begins = []  # sorted; owners do not overlap
        self._owners = {}  # by their begin

    def of(self, storage):
        """None where nothing is known of it, or only bytes that came there unseen."""
        owner = self._owners.get(storage.data_ptr())
        return owner if owner is not None and owner.is_of(storage) else None

    def claim(self, storage):
        """The storage owns what lies in it from now on; what earlier owners left there is forgotten."""
        owner = self.of(storage)
        if owner is None:
            owner = Owner(storage)
            if owner.begin == owner.end:  # nothing lies in it, and all such have one address
                return owner
            self._drop(self._overlapping(owner.begin, owner.end))
            bisect.insort(self._begins, owner.begin)
            self._owners[owner.begin] = owner
        return owner

    def drop_gone(self):
        """Before bytes are written that nobody claims."""
        self._drop([begin for begin in self._begins if self._owners[begin].is_gone()])

    def _drop(self, begins):
        for begin in begins:
            library.forget(begin, self._owners.pop(begin).end - begin)
            del self._begins[bisect.bisect_left(self._begins, begin)]

    def _overlapping(self, begin, end):
        first = bisect.bisect_left(self._begins, begin)
        if first and self._owners[self._begins[first - 1]].end > begin:
            first -= 1
        return self._begins[first:bisect.bisect_left(self._begins, end)]
