"""The record of one process: lines of JSON in DIRECTORY/PID.jsonl, each written as it happens, so that a crash leaves
what came before it. lib/trace/probe_record.h lists the events and their fields."""
import json
import os


class Recorder:
    def __init__(self, request):
        self._path = os.path.join(request.directory, f"{os.getpid()}.jsonl")
        self._file = None
        self._forked = False
        os.register_at_fork(after_in_child=self._silence)

    def _silence(self):
        """A forked child (a data loader's worker) is no rank."""
        self._forked = True

    @property
    def active(self):
        return not self._forked

    def write(self, event, **fields):
        if self._forked:
            return
        if self._file is None:
            self._file = open(self._path, "ab", buffering=0)
        self._file.write((json.dumps({"event": event, **fields}) + "\n").encode())
