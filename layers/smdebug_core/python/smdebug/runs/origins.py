"""The origins of runs in words, and how two of them differ."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from smdebug.exceptions import DamagedFile
from smdebug.files.notes.origin import Origin
from smdebug.trials import Trial

MISSING = "–"
_COMMIT_LETTERS = 12


class ConfigDifference(NamedTuple):
    """A value that differs between two runs; None for a run that lacks it."""

    name: str
    first: Any
    other: Any

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return self._asdict()


def readable_origin(trial: Trial) -> Origin | None:
    """Return the origin of the run; None if it keeps none, or a damaged one, which `inspect` reports."""
    try:
        return trial.origin
    except DamagedFile:
        return None


def differences(first: Origin | None, other: Origin | None) -> list[ConfigDifference]:
    """Return the differences between the configurations of two runs, then their code, versions and machines.

    Empty if one of them has no origin: no difference is known.
    """
    if first is None or other is None:
        return []
    config = [
        ConfigDifference(name, shown(first.config, name), shown(other.config, name))
        for name in differing([first.config, other.config])
    ]
    around = [
        ("tags", list(first.tags), list(other.tags)),
        ("note", first.note, other.note),
        ("commit", commit_in_words(first), commit_in_words(other)),
        ("command", command_in_words(first), command_in_words(other)),
        ("python", first.python, other.python),
        *(
            (name, first.packages.get(name), other.packages.get(name))
            for name in sorted({*first.packages, *other.packages})
        ),
        ("platform", first.platform, other.platform),
        ("host", first.host, other.host),
    ]
    return config + [ConfigDifference(*difference) for difference in around if difference[1] != difference[2]]


def differing(configurations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the values that are not the same in all configurations; missing is a value, too.

    Those that are the same wherever they are given tell little, and come last.
    """
    names = dict.fromkeys(name for configuration in configurations for name in configuration)
    different = [name for name in names if not _is_same_in_all(configurations, name)]
    return sorted(
        different,
        key=lambda name: _is_same_in_all([each for each in configurations if name in each], name),
    )


def shown(config: Any, name: str) -> Any:
    """Return the value of that name; an explicit null as text, to tell it from a missing one."""
    if name not in config:
        return None
    return "null" if config[name] is None else config[name]


def value_in_words(value: Any) -> str:
    """Return a value of a configuration as text."""
    if value is None or value == "":
        return MISSING
    if isinstance(value, list):
        return ", ".join(map(value_in_words, value)) or MISSING
    return repr(value) if isinstance(value, float) else str(value)


def command_in_words(origin: Origin) -> str:
    """Return the command line as one would type it."""
    return shlex.join(origin.command)


def commit_in_words(origin: Origin) -> str:
    """Return commit and branch: `4f2c81aa03bd (main), with uncommitted changes`."""
    if not origin.commit:
        return ""
    branch = f" ({origin.branch})" if origin.branch else ""
    changed = ", with uncommitted changes" if origin.dirty else ""
    return f"{origin.commit[:_COMMIT_LETTERS]}{branch}{changed}"


def in_words(origin: Origin) -> list[tuple[str, str]]:
    """Return the lines of an origin, except its configuration: a label and a value each."""
    packages = ", ".join(f"{name} {version}" for name, version in origin.packages.items())
    lines = [
        ("imported", imported_in_words(origin)),
        ("command", command_in_words(origin)),
        ("commit", commit_in_words(origin)),
        ("versions", f"Python {origin.python}" + (f", {packages}" if packages else "")),
        ("host", f"{origin.host}, {origin.platform}".strip(", ")),
        ("tags", ", ".join(origin.tags)),
        ("note", origin.note),
    ]
    return [(name, text) for name, text in lines if text and text != "Python "]


def imported_in_words(origin: Origin) -> str:
    """Return which log the run was imported from, and what the rules read of it; empty if from none.

    `tensorboard /logs/a: loss from train/loss, its validation from val/loss; not imported: 3 images`
    """
    imported = origin.imported
    if imported is None:
        return ""
    training = [name for name, series in imported.series.items() if series == "loss (train)"]
    validation = [name for name, series in imported.series.items() if series == "loss (eval)"]
    parts = [f"loss from {name}" for name in training] or ["no loss of the training"]
    parts += [f"validation loss from {name}" for name in validation]
    others = len(imported.series) - len(training) - len(validation)
    if others:
        parts.append(f"{others} other series")
    text = f"{imported.format} {imported.source}: {', '.join(parts)}"
    if imported.steps != "step":
        text += f"; a step is {'an' if imported.steps == 'epoch' else 'a'} {imported.steps}"
    if imported.left_out:
        left_out = ", ".join(f"{count:,} × {what}" for what, count in imported.left_out.items())
        text += f"; not imported: {left_out}"
    return text


def _is_same_in_all(configurations: Sequence[Mapping[str, Any]], name: str) -> bool:
    return all(_is_same(configurations[0], each, name) for each in configurations)


def _is_same(first: Any, other: Any, name: str) -> bool:
    if name not in first or name not in other:
        return False
    return bool(first[name] == other[name]) and isinstance(first[name], bool) == isinstance(other[name], bool)
