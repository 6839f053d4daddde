"""The facts of a loss: what it was computed from, what its targets are, and whether an input reveals them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from numpy.typing import NDArray

from smdebug.numbers.loss_terms import ABSOLUTE, HUBER, SMOOTH, SQUARED
from smdebug.numbers.revealed import LEAST_ROWS, same_column, same_tokens
from smdebug.numbers.targets import (
    MAX_VALUES,
    class_facts,
    constant_cost,
    error_between,
    number_facts,
    some_rows,
    weight_facts,
)
from smdebug.numbers.tokens import token_facts
from smdebug.pytorch.graphs.named_divisor import named_divisor
from smdebug.pytorch.graphs.positives import equal_positives
from smdebug.pytorch.observing.loss_graph import CROSS_ENTROPY, LossGraph, LossTerm
from smdebug.pytorch.tensors.on_device import fetched

_MOST_INPUTS = 4
_READABLE = frozenset((torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8))
_OF_NUMBERS = frozenset((SQUARED, ABSOLUTE, SMOOTH, HUBER))
_LEAST_LENGTH = 4
"""Shorter inputs are no sequences."""
_MOST_FEATURES = 64
_MOST_WEIGHTS = 128

Facts = dict[str, Any]


def loss_facts(
    loss: torch.Tensor,
    graph: LossGraph,
    inputs: Sequence[torch.Tensor],
    attention: Callable[[], Facts | None] | None = None,
    codes: Callable[[], Facts] | None = None,
    padding_id: int | None = None,
    *,
    is_returned: bool = False,
) -> Callable[[], Facts]:
    """Copy what the facts of a loss need; what is returned computes them, later.

    A model that returns its loss (`is_returned`) was given the targets beside its inputs.
    """
    terms = [_term_facts(term) for term in graph.terms]
    revealed = tokens = None
    if len(graph.terms) == 1:
        tokens = _tokens(graph.terms[0], inputs, padding_id)
    if graph.is_whole and len(graph.terms) == 1:
        revealed = _revealed(graph.terms[0], inputs, is_returned=is_returned)
        terms = [_with_repeated(graph.terms[0], terms[0], inputs)]
    value = _copied(loss.detach()) if graph.is_whole else None
    facts = partial(_facts, graph.factor, graph.broadcast, terms, value, revealed, tokens, attention)
    positives = _positives(loss, graph)
    more: Facts = {"idle": graph.idle} if graph.idle else {}
    if (divisor := named_divisor(loss)) is not None:
        more["accumulates"] = divisor._asdict()
    if more or codes is not None or positives is not None:
        return lambda: {
            **facts(),
            **more,
            **({} if codes is None else codes()),
            **({} if positives is None else {"positives": positives()}),
        }
    return facts


def _positives(loss: torch.Tensor, graph: LossGraph) -> Callable[[], dict[str, int]] | None:
    """Compare the pairs of a contrastive loss, whose classes are the rows of the batch."""
    term = graph.terms[0] if graph.terms else None
    if term is None or term.criterion != CROSS_ENTROPY or term.targets is None:
        return None
    is_contrastive = term.rows == term.classes >= LEAST_ROWS
    return equal_positives(loss, term.targets, term.rows) if is_contrastive else None


def _facts(
    factor: float,
    broadcast: tuple[int, ...] | None,
    terms: list[Callable[[], Facts]],
    value: Callable[[], Any] | None,
    revealed: list[Any] | None,
    tokens: Facts | None,
    attention: Callable[[], Facts | None] | None,
) -> Facts:
    facts: Facts = {
        "factor": factor,
        "broadcast": None if broadcast is None else list(broadcast),
        "terms": [term() for term in terms],
    }
    if value is not None and math.isfinite(number := float(value().reshape(()))):
        facts["value"] = number
    if revealed is not None:
        facts["revealed_by"] = revealed
    if tokens is not None:
        facts["tokens"] = tokens
    if attention is not None and (seen := attention()) is not None:
        facts["attention"] = seen
    return facts


def _term_facts(term: LossTerm) -> Callable[[], Facts]:
    facts: Facts = {
        "criterion": term.criterion,
        "given": term.given,
        "rows": term.rows,
        "classes": term.classes,
        "reduction": term.reduction,
        "of_a_layer": term.is_of_a_layer,
    }
    if term.is_weighted:
        facts["weighted"] = True
    if term.normalised is not None:
        facts["normalised"] = {"axis": term.normalised.axis, "length": term.normalised.length}
    weights = None if term.weights is None or term.weights.numel() > _MOST_WEIGHTS else _copied(term.weights)
    if term.targets is not None:
        copied = _copied(term.targets)
        return lambda: (
            facts if copied is None else {**facts, **_each(weights), **class_facts(copied(), term.ignored)}
        )
    if term.numbers is not None:
        copied = _copied(some_rows(term.numbers))
        return lambda: facts if copied is None else {**facts, **_of_numbers(term, copied(), weights)}
    return lambda: facts


def _each(weights: Callable[[], Any] | None) -> Facts:
    return {} if weights is None else {"weights": weights().reshape(-1).tolist()}


def _of_numbers(term: LossTerm, targets: NDArray[Any], weights: Callable[[], Any] | None) -> Facts:
    facts = number_facts(targets)
    if weights is not None:
        facts |= weight_facts(weights(), targets)
    if term.knee is not None:
        cost = constant_cost(targets, term.knee, term.knee if term.criterion == HUBER and term.knee else 1.0)
        if cost is not None:
            facts["constant"] = cost
    return facts


def _with_repeated(
    term: LossTerm, facts: Callable[[], Facts], inputs: Sequence[torch.Tensor]
) -> Callable[[], Facts]:
    """Add what it would cost to predict the last value of each row of the input again, as of a forecast."""
    wanted = term.numbers
    if wanted is None or term.criterion not in _OF_NUMBERS or len(inputs) != 1 or term.is_weighted:
        return facts
    last = _last_values(inputs[0], wanted)
    if last is None or wanted.numel() > MAX_VALUES or not wanted.is_cpu or wanted.dtype not in _READABLE:
        return facts
    given, there = last.clone().numpy(), wanted.clone().numpy()
    scale = term.knee if term.criterion == HUBER and term.knee else 1.0

    def more() -> Facts:
        cost = error_between(given, there, term.knee, scale)
        return facts() if cost is None else {**facts(), "repeated": cost}

    return more


def _last_values(given: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor | None:
    """The last values of sequences, where there are as many as targets; None of other inputs."""
    is_known = (
        given.is_cpu and given.layout is torch.strided and given.dtype in (torch.float32, torch.float64)
    )
    if not is_known or given.dim() not in (2, 3) or given.shape[1] < _LEAST_LENGTH or not wanted.dim():
        return None
    last, rows = given.detach()[:, -1], given.shape[0]
    if wanted.shape[0] != rows:
        return None
    if wanted.numel() == last.numel():
        return last
    if wanted.numel() != rows or last.shape[1] > _MOST_FEATURES:
        return None
    return last[:, (last - wanted.reshape(rows, 1)).square().sum(0).argmin()]  # the series among features


def _copied(values: torch.Tensor) -> Callable[[], Any] | None:
    """Begin to copy values that may change; None on a device that would have to be waited for."""
    if values.layout is not torch.strided or values.is_complex():
        return None
    if values.dtype in (torch.bfloat16, torch.float16):
        values = values.float()
    if values.is_cpu:
        own = values.clone()
        return lambda: own.numpy()
    return fetched(values.contiguous()) if values.is_cuda else None


def _revealed(term: LossTerm, inputs: Sequence[torch.Tensor], *, is_returned: bool) -> list[Any] | None:
    """Return where the targets of this batch are found in its inputs, as they are; None if nowhere.

    The targets themselves, as a model takes them that returns its loss, are no input.

    That is [number of the input, "input"] for token ids that are the targets at the same place, "token
    before" for those one place before, or the column that is the target.
    """
    wanted = term.targets if term.targets is not None else term.numbers
    targets = None if wanted is None else _on_the_host(wanted)
    if targets is None or not LEAST_ROWS <= targets.size <= MAX_VALUES:
        return None
    for number, tensor in enumerate(inputs[:_MOST_INPUTS]):
        given = _on_the_host(tensor)
        if given is None or given.ndim < 2:
            continue
        if is_returned and number and given.size == targets.size and (given.ravel() == targets.ravel()).all():
            continue
        if term.targets is not None and given.ndim == 2 and given.size == targets.size:
            place = same_tokens(targets.reshape(given.shape), given, term.ignored)
            if place is not None:
                return [number, place]
        column = same_column(targets, given)
        if column is not None:
            return [number, column]
    return None


def _tokens(term: LossTerm, inputs: Sequence[torch.Tensor], padding_id: int | None) -> Facts | None:
    """Return how labels stand to the token ids and the mask of the model, if it was given any."""
    labels = None if term.targets is None else _on_the_host(term.targets)
    if labels is None:
        return None
    given = [_on_the_host(tensor.byte() if tensor.dtype is torch.bool else tensor) for tensor in _ids(inputs)]
    return token_facts(labels, [read for read in given if read is not None], term.ignored, padding_id)


def _ids(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The first inputs that may be token ids or masks of them."""
    return [tensor for tensor in inputs[:_MOST_INPUTS] if tensor.dim() == 2 and tensor.is_cpu]


def _on_the_host(values: torch.Tensor) -> NDArray[Any] | None:
    """Return the values without a copy; None if NumPy cannot read them where they are."""
    if not values.is_cpu or values.layout is not torch.strided or values.dtype not in _READABLE:
        return None
    read: NDArray[Any] = values.detach().numpy()
    return read
