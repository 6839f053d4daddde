"""One deliberate edit of a source, and a process that imports the module with it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class SourceEdit:
    """What is replaced by what, in which file."""

    name: str
    file: str
    old: str
    new: str

    @property
    def path(self) -> Path:
        return ROOT / self.file

    def applied(self) -> str:
        """Return the edited source."""
        source = self.path.read_text(encoding="utf-8")
        if source.count(self.old) != 1:
            raise ValueError(f"{self.file} has {source.count(self.old)} times: {self.old}")
        return source.replace(self.old, self.new)

    def import_it(self) -> list[str]:
        """Import the module with the edit from now on; return a list that has its name once it was imported.

        A test that never imports it has shown nothing.
        """
        edited = compile(self.applied(), str(self.path), "exec", dont_inherit=True)
        get_code = SourceFileLoader.get_code
        imported: list[str] = []

        def code_of(loader: SourceFileLoader, name: str) -> CodeType | None:
            if Path(loader.path) != self.path:
                return get_code(loader, name)
            imported.append(name)
            return edited

        SourceFileLoader.get_code = code_of  # type: ignore[method-assign, assignment]
        return imported
