"""Runs a function as soon as the program has imported a module, on the module."""
import importlib.abc
import importlib.util
import sys

_waiting = {}
problems = []  # functions of a text: who hears that something could not be put into place


class _Loader(importlib.abc.Loader):
    """The module's own loader, with what waits for the module after it."""

    def __init__(self, name, loader):
        self._name = name
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        spec = getattr(module, "__spec__", None)
        if spec is not None:
            spec.loader = self._loader  # tools that look at it (inspect, pickle, runpy) find the real one
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        for function in _waiting.pop(self._name, []):
            _call(function, module)

    def __getattr__(self, attribute):
        return getattr(self._loader, attribute)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self):
        self._finding = set()

    def find_spec(self, name, path=None, target=None):
        if name not in _waiting or name in self._finding:
            return None
        self._finding.add(name)
        try:
            for finder in sys.meta_path:
                if finder is self:
                    continue
                find = getattr(finder, "find_spec", None)
                spec = find(name, path, target) if find else None
                if spec is not None:
                    break
            else:
                return None
        finally:
            self._finding.discard(name)
        if spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(name, spec.loader)
        return spec


def _call(function, module):
    """The program goes on without what cannot be put into place, and the report says so."""
    try:
        function(module)
    except Exception as error:
        for tell in problems:
            tell(f"{module.__name__}: {type(error).__name__}: {error}")


def after_import(name, function):
    """At once where the module is there already."""
    if name in sys.modules:
        _call(function, sys.modules[name])
        return
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    _waiting.setdefault(name, []).append(function)


def replace(holder, name, make):
    """holder.name becomes make(what it was), with the same name and documentation; absent attributes stay absent."""
    import functools

    old = getattr(holder, name, None)
    if old is None:
        return
    new = make(old)
    try:
        functools.update_wrapper(new, old)
    except (AttributeError, TypeError):
        pass
    setattr(holder, name, new)
