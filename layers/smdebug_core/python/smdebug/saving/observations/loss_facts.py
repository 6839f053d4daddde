"""The fact of what a step's loss was computed from, for loops that report it with `record_loss`."""

from __future__ import annotations

from typing import Any, NamedTuple

from smdebug.numbers.loss_terms import MAX_ROWS, broadcast_shape, loss_term
from smdebug.saving.arrays.adapter import Array, FrameworkAdapter
from smdebug.saving.observations.step_observations import StepObservations
from smdebug.saving.planning.step_clock import StepClock

PREDICTIONS = "predictions"
LABELS = "labels"
"""The name of the tensor and of its kind: of inputs, rules expect that each batch differs."""
MAX_TERMS = 8


class _Term(NamedTuple):
    """One criterion: the value it returned, and what it was given."""

    value: Any
    predictions: Array
    labels: Array | None
    criterion: str
    rows: int


class LossTerms:
    """Gathers the terms of one step's loss; they are described in the background."""

    def __init__(self) -> None:
        self._step: StepClock | None = None
        self._terms: list[_Term] = []

    def add(
        self,
        at: tuple[StepObservations, StepClock],
        adapter: FrameworkAdapter,
        values: tuple[Any, Any, Any],
        criterion: str,
    ) -> None:
        """Add a term: its value, what it was given, and the name of its criterion."""
        observations, step = at
        loss, predictions, labels = values
        if self._step is not step:
            self._step, self._terms = step, []
        terms = self._terms
        if len(terms) == MAX_TERMS:
            return
        shape = getattr(predictions if labels is None else labels, "shape", None) or (1,)
        terms.append(
            _Term(
                adapter.number(loss),
                _copied(adapter, predictions),
                None if labels is None else _copied(adapter, labels),
                criterion,
                int(shape[0]),
            )
        )
        observations.note(loss=lambda: _described(terms))


def _copied(adapter: FrameworkAdapter, value: Any) -> Array:
    """Return the values of the first rows, in memory that does not change later."""
    shape = getattr(value, "shape", None)
    array = adapter.to_array(value[:MAX_ROWS] if shape and shape[0] > MAX_ROWS else value)
    return array.copy() if array.flags.writeable or not array.flags.owndata else array


def _described(terms: list[_Term]) -> dict[str, Any]:
    shapes = [
        broadcast_shape(
            None if term.value is None else float(term.value),
            term.predictions,
            term.labels,
            term.criterion,
        )
        for term in terms
    ]
    return {
        "factor": 1.0,
        "broadcast": next((shape for shape in shapes if shape), None),
        "terms": [
            {**loss_term(term.predictions, term.labels, term.criterion), "rows": term.rows} for term in terms
        ],
    }
