"""Finds components: a class or function that is decorated in some file of a package is known by its name.

    spaces: Registry[type[Space]] = Registry("space", "theta0.spaces")

    @spaces.register("nasbench201")
    class NASBench201(Space): ...

    spaces.get("nasbench201")                  # scans theta0/spaces once, file by file
    spaces.get("mypackage.myfile:MySpace")     # a user's own, by import path or by file
    spaces.get("folder/myfile.py:MySpace")

A new component is a new file in the package; nothing else has to name it.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from theta0.errors import Theta0Error, nearest

T = TypeVar("T")


class Registry(Generic[T]):
    """The components of one kind, by name; ``package`` is scanned at the first look-up."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind, self.package = kind, package
        self._known: dict[str, T] = {}
        self._scanned = False

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator: makes the component known as ``name``."""

        def add(component: T) -> T:
            known = self._known.get(name, component)
            # A reload of the same file may register again; two different components under one name may not.
            if getattr(known, "__module__", None) != getattr(component, "__module__", None):
                raise Theta0Error(f"two {self.kind}s are called {name!r}: {known!r} and {component!r}; rename one")
            self._known[name] = component
            return component

        return add

    def names(self) -> list[str]:
        """The names of all components of the package, sorted."""
        self._scan()
        return sorted(self._known)

    def get(self, name: str) -> T:
        """The component called ``name``, or the one at the import path ``module:attribute``."""
        if ":" in name:
            component: T = imported(name)
            return component
        self._scan()
        if name not in self._known:
            raise Theta0Error(f"no {self.kind} is called {name!r}; {nearest(name, self._known)}")
        return self._known[name]

    def _scan(self) -> None:
        if self._scanned:
            return
        package = importlib.import_module(self.package)
        for info in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{self.package}.{info.name}")
        self._scanned = True


def imported(path: str) -> Any:
    """What lies at ``module:attribute`` or ``path/to/file.py:attribute``."""
    module_name, _, attribute = path.rpartition(":")
    try:
        module = _file(module_name) if module_name.endswith(".py") else importlib.import_module(module_name)
    except (ImportError, OSError) as error:
        raise Theta0Error(
            f"{path!r} cannot be imported: {error}; write package.module:Name, importable from this folder, or "
            f"path/to/file.py:Name"
        ) from error
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise Theta0Error(f"module {module_name!r} has no {attribute!r}; {nearest(attribute, names)}")
    return getattr(module, attribute)


def _file(path: str) -> types.ModuleType:
    """The module of one file, which need not lie in a package."""
    name = f"theta0_user_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
