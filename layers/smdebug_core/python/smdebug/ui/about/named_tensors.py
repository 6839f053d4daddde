"""The tensors whose distributions are worth a look: those in findings, and those saved whole on request."""

from __future__ import annotations

from collections.abc import Sequence

from smdebug.mode_keys import ModeKeys
from smdebug.plain_text import escaped
from smdebug.trials import Trial
from smdebug.trials.kinds import in_kind_order
from smdebug.ui.answer_types import NamedTensor, RuleAnswer
from smdebug.ui.read_run import ReadRun

MOST_NAMED = 12


def named_tensors(run: ReadRun, rules: Sequence[RuleAnswer]) -> list[NamedTensor]:
    """Return these tensors by kind, in the order of the network."""
    names = {name for rule in rules for found in rule["found"] for name in found["tensors"]}
    names.update(map(escaped, zoomed_into(run.trial)))
    if not names:
        return []
    named: list[NamedTensor] = []
    for kind in in_kind_order(run.kinds):
        rows = [escaped(run.kinds[kind].names[place]) for place in run.order(kind)]
        named += [{"kind": kind, "name": name} for name in rows if name in names]
    return named[:MOST_NAMED]


def zoomed_into(trial: Trial | None) -> dict[str, list[int]]:
    """Return the tensors that were saved whole on request, with their global steps."""
    if trial is None or "zoom" not in trial.collections():
        return {}
    names = trial.tensor_names(collection="zoom")
    return {name: trial.tensor(name).steps(ModeKeys.GLOBAL) for name in names if trial.has_tensor(name)}
