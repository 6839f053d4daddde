"""The rooms whose tests are held to notice edits, and the tests of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

_LIBRARY = "layers/smdebug_core/python/smdebug"


class Room(NamedTuple):
    """Folders of code, and the tests that belong to them."""

    code: Sequence[str]
    tests: Sequence[str]
    apart: Mapping[str, str] = MappingProxyType({})
    """Modules of processes that see nothing of the environment, and which tests start those."""


ROOMS = {
    "saving": Room(
        [f"{_LIBRARY}/saving"],
        ["tests/saving", "tests/faults", "tests/companion", "tests/sinks", "tests/secrets/test_places.py"],
    ),
    "trials": Room(
        [f"{_LIBRARY}/trials", f"{_LIBRARY}/numbers"],
        # what was logged is read where it is written
        ["tests/trials", "tests/numbers", "tests/saving/logged"],
    ),
    "diagnosis": Room([f"{_LIBRARY}/diagnosis"], ["tests/diagnosis"]),
    "functions": Room(
        ["functions"],
        ["tests/functions", "tests/backtesting/deployed"],
        {"functions/custom_rules/child.py": "tests/functions/custom_rules/"},
    ),
    "ui": Room(
        [f"{_LIBRARY}/ui"],
        # a report is the page with its answers in one file
        ["tests/ui", "tests/reports/test_report.py", "tests/cli/runs/test_ui.py"],
    ),
    "default-rules": Room(["rules/smdebug_default_rules"], ["tests/smdebug_default_rules"]),
    "backtesting": Room([f"{_LIBRARY}/backtesting"], ["tests/backtesting"]),
    "importing": Room([f"{_LIBRARY}/importing"], ["tests/importing"]),
}
"""At least nine of ten edits are noticed here."""


def room_of(name: str, root: Path) -> Room | None:
    """Return the room of that name: of the table, or a folder of the library with tests of its name."""
    if name in ROOMS:
        return ROOMS[name]
    for folder in (f"{_LIBRARY}/{name}", f"rules/{name}", name):
        if (root / folder).is_dir() and (root / "tests" / name).is_dir():
            return Room([folder], [f"tests/{name}"])
    return None
