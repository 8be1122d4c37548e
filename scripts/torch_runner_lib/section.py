"""A job, read so that nothing of it can be passed over."""


class Refused(ValueError):
    """The job asks for what this program does not do."""


_REQUIRED = object()


class Section:
    """A map of the job; every key must be taken, or finish() refuses it."""

    def __init__(self, name, values):
        if not isinstance(values, dict):
            raise Refused(f"{name or 'the job'}: expected a map")
        self.name = name
        self._values = dict(values)

    def path(self, key):
        return f"{self.name}.{key}" if self.name else key

    def take(self, key, default=_REQUIRED):
        if key in self._values:
            return self._values.pop(key)
        if default is _REQUIRED:
            raise Refused(f"{self.path(key)} is missing")
        return default

    def section(self, key):
        """The map under a key, None where there is none."""
        values = self._values.pop(key, None)
        return None if values is None else Section(self.path(key), values)

    def only(self, key, *allowed, why):
        """An option that can have no other value here."""
        value = self.take(key, allowed[0])
        if value not in allowed:
            raise Refused(f"{self.path(key)}: {value} is not done here: {why}")

    def told(self, *keys):
        """What describes the job or its machine and changes nothing of the program."""
        for key in keys:
            self._values.pop(key, None)

    def finish(self):
        if self._values:
            raise Refused(f"{self.path(sorted(self._values)[0])} is not understood by this program")
