"""Recurrent layers that take the rows of a batch for the steps of a sequence, as without batch_first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.tensors import Modules

_RECURRENT = ("LSTM", "GRU", "RNN")
TITLE = "A recurrent layer mixes the rows of a batch"


class Mixed(NamedTuple):
    """A recurrent layer whose steps are the rows of the batch."""

    layer: str
    output: str
    shape: tuple[int, ...]
    rows: int
    tokens: int
    is_batch_first: bool

    @property
    def message(self) -> str:
        """What is wrong."""
        return (
            f"The recurrent layer {self.layer} goes from row to row of the batch, {self.rows} steps, and "
            f"takes the {self.tokens} places of a row for {self.tokens} separate sequences"
        )

    @property
    def why(self) -> str:
        """The numbers that convince."""
        return (
            f"Its output is {list(self.shape)} and it keeps {self.tokens} hidden states, while the loss "
            f"compares {self.rows} rows"
        )

    @property
    def advice(self) -> str:
        """What to try."""
        if self.is_batch_first:
            return (
                "Give the layer [rows, steps, features], as batch_first=True says: do not transpose its "
                "input, or leave batch_first out."
            )
        return (
            "Give the layer batch_first=True, or transpose its input to [steps, rows, features]; its last "
            "step is then output[:, -1] or output[-1]."
        )


def mixed(seen: ObservedStep) -> Iterator[Mixed]:
    """Yield each recurrent layer that has a hidden state for each place of a row, not for each row.

    Nothing is known if there are as many rows as places, or if each place of a row has a target.
    """
    shapes, outputs = seen.facts.get("shapes") or [], seen.statistics("outputs")
    terms = (seen.facts.get("loss") or {}).get("terms") or []
    if not shapes or len(shapes[0]) < 2 or not terms or outputs is None:
        return
    given = tuple(shapes[0][:2])
    for layer, kind in Modules.of(seen).classes.items():
        names = [f"{layer}_output_{number}" for number in (0, 1)]
        if kind not in _RECURRENT or not all(name in outputs for name in names):
            continue
        output, hidden = (outputs.tensors[outputs.names.index(name)].shape for name in names)
        if len(output) != 3 or len(hidden) != 3 or hidden[1] not in output[:2] or output[0] == output[1]:
            continue
        is_batch_first = hidden[1] == output[0]
        rows, tokens = output[1 if is_batch_first else 0], hidden[1]
        is_whole = tuple(output[:2]) == given or (is_batch_first and tuple(output[1::-1]) == given)
        if is_whole and tokens > 1 and all(_is_of_rows(term, rows, tokens) for term in terms):
            yield Mixed(layer, names[0], tuple(output), rows, tokens, is_batch_first)


def _is_of_rows(term: Mapping[str, Any], rows: int, tokens: int) -> bool:
    """Whether each row has a target, and not each of its places."""
    if term.get("rows") != rows:
        return False
    if "columns" in term:
        return bool(term.get("target_rows") == rows and term["columns"] % tokens)
    return bool(term.get("targets") == rows and not term.get("ignored"))
