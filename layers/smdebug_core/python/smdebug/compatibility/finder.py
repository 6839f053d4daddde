"""Makes `import` follow the table of old addresses.

`smdebug` puts `OldAddresses` behind Python's own finders, so it is asked only for modules that have no file.
The table is loaded with the first old module.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import CodeType, ModuleType
from typing import Any

_PACKAGES = ("smdebug", "tornasole", "tornasole_rules")


def follow_old_addresses() -> None:
    """Let `import` find the modules of the table, in this process."""
    sys.meta_path.append(OldAddresses())


def become_old_module(name: str) -> None:
    """Replace a module that has a file, as a package at the top must, by the one of the table."""
    finder = OldAddresses()
    spec = finder.find_spec(name)
    assert spec is not None
    module = sys.modules[name] = module_from_spec(spec)
    finder.exec_module(module)


class OldAddresses:
    """Finds and loads the modules of the table; `package` is the one whose modules it lists."""

    def __init__(self, package: str = ""):
        self._package = package

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of an old module; ModuleNotFoundError says what its package offers instead."""
        package, _, last = name.rpartition(".")
        if name.partition(".")[0] not in _PACKAGES:
            return None
        addresses, origin = _table()
        if name not in addresses:
            if package in addresses:
                # Without the attribute `name`, so that `from package import last` shows the sentence as well.
                raise ModuleNotFoundError(_not_offered(package, last))
            return None
        is_package = not isinstance(addresses[name], str)
        loader: Any = self
        spec = ModuleSpec(name, loader, origin=origin, is_package=is_package)
        if is_package:
            place = f"{origin}/{name}"  # for pkgutil, which lists what is at a place
            spec.submodule_search_locations = [place]
            sys.path_importer_cache[place] = OldAddresses(name)
        return spec

    def iter_modules(self, prefix: str = "") -> Iterator[tuple[str, bool]]:
        """Yield the modules below the package, for `pkgutil`."""
        for name in _below(self._package):
            is_package = not isinstance(_table()[0][f"{self._package}.{name}"], str)
            yield prefix + name, is_package

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        home = _table()[0][module.__name__]
        if isinstance(home, str):
            sys.modules[module.__name__] = import_module(home)
        else:
            module.__class__ = OldModule

    def get_code(self, name: str) -> CodeType | None:
        """Return the code of the module that `name` stands for: `python -m` runs it."""
        spec: Any = find_spec(str(_table()[0][name]))
        code: CodeType | None = spec.loader.get_code(spec.name)
        return code


class OldModule(ModuleType):
    """A module whose names live in others. They are read there, and patched there."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return sorted(_homes_of(self.__name__))
        home = _homes_of(self.__name__).get(name)
        if home is not None:
            return getattr(import_module(home), name)
        if name in _below(self.__name__):
            return import_module(f"{self.__name__}.{name}")
        raise AttributeError(_not_offered(self.__name__, name))

    def __setattr__(self, name: str, value: Any) -> None:
        home = _homes_of(self.__name__).get(name)
        if home is None:
            super().__setattr__(name, value)
        else:
            setattr(import_module(home), name, value)

    def __delattr__(self, name: str) -> None:
        home = _homes_of(self.__name__).get(name)
        if home is None:
            super().__delattr__(name)
        else:
            delattr(import_module(home), name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_homes_of(self.__name__), *_below(self.__name__)})


def _table() -> tuple[Mapping[str, str | Mapping[str, str]], str]:
    """Return the table, and its file."""
    from smdebug.compatibility import addresses

    return addresses.ADDRESSES, addresses.__file__


def _homes_of(module: str) -> dict[str, str]:
    """Return the modules in which the names of an old module live."""
    homes = _table()[0][module]
    assert not isinstance(homes, str)
    return {name: home for home, names in homes.items() for name in names.split()}


def _below(package: str) -> list[str]:
    """Return the names of the modules in a package."""
    places = (name.rpartition(".") for name in _table()[0])
    return [name for above, _, name in places if above == package]


def _not_offered(module: str, name: str) -> str:
    from smdebug.plain_text import did_you_mean

    offered = [*_homes_of(module), *_below(module)] if module in _table()[0] else []
    hint = did_you_mean(name, offered) or f" It has {', '.join(sorted(offered))}."
    return f"{module} has no {name} here.{hint} docs/migrating.md names what is not offered."
