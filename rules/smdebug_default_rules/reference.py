"""The part of docs/rules.md about the default rules, written from their catalog."""

# ruff: noqa: E501 - prose

from __future__ import annotations

from collections.abc import Iterator
from inspect import getdoc

from smdebug_default_rules.catalog import CATALOG, TAKES_THE_PLACE_OF
from smdebug_rules.catalog import RuleEntry

_HEAD = """\
## The default set

These rules evaluate a run when no rules are named: `smdebug evaluate RUN`, `smdebug report RUN`, the notebook, the laptop and the
deployed debugger. They read what the [default plan](frameworks.md#one-line) saves: statistics of all tensors, facts about the step,
and the loss of every step. A run that was saved with a choice of tensors has none of these, and the set is then *not checked*.

They take no parameters. They compare with a tensor's own past and with its peers, wait until they have seen enough, and name the
cause, the place, and the step since when it was visible. The rules of the old library, further below, have absolute limits, and are
evaluated if they are named, with their documented meaning. The last column says which of them a default rule takes the place of.

| rule | finds | cause | in place of |
|---|---|---|---|
"""


def default_set() -> str:
    """Return the chapter about the default rules."""
    rows = [_row(name, entry) for name, entry in CATALOG.items()]
    sections = [line for entry in CATALOG.values() for line in _section(entry)]
    return _HEAD + "\n".join([*rows, *sections]) + "\n"


def _row(name: str, entry: RuleEntry) -> str:
    replaced = ", ".join(f"[{old}](#{old.lower()})" for old in TAKES_THE_PLACE_OF.get(name, ()))
    causes = ", ".join(_advice(entry))
    return f"| [{name}](#{name.lower()}) | {entry.sentence} | {causes} | {replaced or '-'} |"


def _section(entry: RuleEntry) -> Iterator[str]:
    yield f"\n### {entry.name}\n"
    yield entry.sentence
    yield ""
    yield (getdoc(entry.load()) or "").strip()
    for cause, sentences in _advice(entry).items():
        yield f"\nWhat to try ({cause}):\n"
        yield from (f"- {sentence}" for sentence in sentences)


def _advice(entry: RuleEntry) -> dict[str, tuple[str, ...]]:
    return dict(entry.load().advice)
