"""What the attention of a model looks at, read off the graph of its loss: the future, padding, other rows.

Also whether its weights sum to 1 over what is looked at, and whether its scores are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from smdebug.numbers.attention import Seen, attention_facts
from smdebug.pytorch.graphs.attention_scores import score_facts, unscaled
from smdebug.pytorch.graphs.saved_values import operations, saved_value
from smdebug.pytorch.observing.loss_graph import LossGraph
from smdebug.pytorch.tensors.rows import signed

MAX_NODES = 800
MAX_FOUND = 6
"""How many attentions are looked at: those nearest to the loss."""
MOST_ROWS, MOST_HEADS, MOST_QUERIES, MOST_TOKENS = 8, 2, 24, 4096
_LEAST_TOKENS = 4
_SOFTMAXES = ("SoftmaxBackward0", "SafeSoftmaxBackward0")
_FUSED = "ScaledDotProduct"
_KEEPING_PLACES = (
    "ViewBackward0",
    "UnsafeViewBackward0",
    "ReshapeAliasBackward0",
    "UnsqueezeBackward0",
    "ExpandBackward0",
    "CloneBackward0",
    "ToCopyBackward0",
    "NativeDropoutBackward0",
)
MOST_BETWEEN = 8
"""How many operations are looked past between weights and the values that they are multiplied with."""
_MASKED = -1e4
"""A score that is lowered by so much has no weight."""


class _Sizes(NamedTuple):
    rows: int
    tokens: int


class Attention:
    """Looks at the attention of the first due steps, and at few of the later ones."""

    FIRST, EVERY = 4, 16

    def __init__(self) -> None:
        self._losses = 0
        self._is_absent = 0

    def facts(
        self, loss: torch.Tensor, graph: LossGraph, inputs: Sequence[torch.Tensor]
    ) -> Callable[[], dict[str, Any] | None] | None:
        """Copy what the facts of the attention need; what is returned computes them, later."""
        self._losses += 1
        is_due = self._losses <= self.FIRST or self._losses % self.EVERY == 0
        if not is_due or self._is_absent >= self.FIRST:
            return None
        given = next((tensor for tensor in inputs[:4] if _is_sequence(tensor)), None)
        if given is None or loss.grad_fn is None:
            return None
        sizes = _Sizes(*given.shape[:2])
        nodes, over_queries = _attentions(loss.grad_fn)
        found = [_seen(node, sizes) for node in nodes]
        self._is_absent = 0 if found else self._is_absent + 1
        if not found:
            return None
        is_early = self._losses <= self.FIRST
        scores = score_facts([unscaled(node) for node in nodes]) if is_early else None
        ids = None
        if given.dim() == 2 and given.is_cpu:
            ids = given.detach()[:MOST_ROWS].clone().numpy()
        term = next((term for term in graph.terms if term.targets is not None), None)
        labels, ignored = (None, None) if term is None else (term.targets, term.ignored)
        wanted = None if labels is None or not labels.is_cpu else labels.detach().clone().numpy()

        def facts() -> dict[str, Any] | None:
            seen = attention_facts(found, sizes.rows, sizes.tokens, ids, wanted, ignored, over_queries)
            known = None if scores is None else scores()
            return seen if seen is None or known is None else {**seen, "undivided": known}

        return facts


def _is_sequence(tensor: torch.Tensor) -> bool:
    """Whether that is [rows, tokens] of ids, or [rows, tokens, features]."""
    if tensor.layout is not torch.strided or tensor.dim() not in (2, 3):
        return False
    is_of_ids = tensor.dim() == 2 and not (tensor.is_floating_point() or tensor.dtype is torch.bool)
    rows, tokens = tensor.shape[:2]
    is_long = _LEAST_TOKENS <= tokens <= MOST_TOKENS and rows >= 2
    return is_long and (is_of_ids or (tensor.dim() == 3 and tensor.is_floating_point()))


def _attentions(root: Any) -> tuple[list[Any], int]:
    """The operations that compute weights of square attention, those nearest to the loss first.

    And how many products have weights that sum to 1 over the queries.
    """
    found: list[Any] = []
    over_queries = 0
    for node in operations(root, MAX_NODES, lambda name: True):
        over_queries += _has_weights_over_queries(node)
        if _is_attention(node):
            found.append(node)
            if len(found) == MAX_FOUND:
                break
    return found, over_queries


def _has_weights_over_queries(node: Any) -> bool:
    """Whether values are multiplied with weights, of [..., queries, keys], that sum to 1 over the queries."""
    if node.name() != "BmmBackward0":
        return False
    softmax, order = _past_what_keeps_places(node.next_functions[0][0])
    if softmax is None or softmax.name() not in _SOFTMAXES:
        return False
    weights, result = saved_value(node, "_saved_self"), saved_value(softmax, "_saved_result")
    if weights is None or result is None or result.dim() < 3 or weights.shape[-2:] != result.shape[-2:]:
        return False
    axes = [axis for axis in order if axis < result.dim() and result.shape[axis] > 1]
    is_over_queries = _axis_of(softmax, result) == result.dim() - 2
    return is_over_queries and min(result.shape[-2:]) > 1 and axes == sorted(axes)


def _past_what_keeps_places(node: Any) -> tuple[Any, Sequence[int]]:
    """The operation before those that leave each weight where it is, and in which order they take its axes.

    Dropout is one of them, and einsum, which adds an axis, exchanges some and exchanges them again. None if
    there are too many.
    """
    order: Sequence[int] = ()
    for _ in range(MOST_BETWEEN):
        if node is None:
            break
        following = [function for function, _ in node.next_functions]
        is_dropout = node.name() == "MulBackward0" and len(following) == 2 and following[1] is None
        if node.name() == "PermuteBackward0":
            axes = [signed(axis) % len(node._saved_dims) for axis in node._saved_dims]
            if order and len(order) != len(axes):
                break
            order = [axes[place] for place in order or range(len(axes))]
        elif not is_dropout and node.name() not in _KEEPING_PLACES:
            return node, order
        node = following[0]
    return None, order


def _axis_of(softmax: Any, result: torch.Tensor) -> int:
    """The axis of its result that sums to 1, counted from the first."""
    axis: int = signed(int(softmax._saved_dim)) % result.dim()
    return axis


def _is_attention(node: Any) -> bool:
    name = node.name()
    return (name in _SOFTMAXES or name.startswith(_FUSED)) and _is_square(node)


def _is_square(node: Any) -> bool:
    result = saved_value(node, "_saved_result")
    if result is not None:
        shape = result.shape
        return len(shape) >= 3 and shape[-1] == shape[-2] >= 2
    query, key = saved_value(node, "_saved_query"), saved_value(node, "_saved_key")
    return query is not None and key is not None and query.dim() == 4 and query.shape[2] == key.shape[2] >= 2


def _seen(node: Any, sizes: _Sizes) -> Seen:
    """Copy which keys some queries have weights for, as far as that can be read without waiting."""
    weights = saved_value(node, "_saved_result")
    if weights is not None:
        length = int(weights.shape[-1])
        if _axis_of(node, weights) != weights.dim() - 1:  # its keys lie along another axis
            return Seen(length)
        leading = weights.numel() // (length * length) if weights.is_cpu else 0
        return _copied(length, weights.reshape(leading, length, length) if leading else None, sizes, 1e-6)
    query = saved_value(node, "_saved_query")
    length = 0 if query is None else int(query.shape[2])
    if getattr(node, "_saved_is_causal", False):
        return Seen(length, is_causal=True)
    mask = saved_value(node, "_saved_attn_mask")
    if mask is None:
        mask = saved_value(node, "_saved_attn_bias")
    if mask is None:
        return Seen(length, sees_all=True)
    if not mask.is_cpu or mask.shape[-1] != length:
        return Seen(length)
    heads = 1 if query is None else int(query.shape[0] * query.shape[1])
    shape = (*mask.shape[:-2], length, length)
    rows = mask.expand(shape).expand(*query.shape[:2], length, length) if query is not None else mask
    if mask.dtype is torch.bool:
        rows = torch.where(rows, 0.0, -torch.inf)
    return _copied(length, rows.reshape(heads, length, length), sizes, _MASKED)


def _copied(length: int, scores: torch.Tensor | None, sizes: _Sizes, limit: float) -> Seen:
    if scores is None or not scores.shape[0] or scores.shape[0] % sizes.rows:
        return Seen(length)
    heads = scores.shape[0] // sizes.rows
    every = -(-length // MOST_QUERIES)
    queries = torch.arange(0, length, every)
    some = scores.reshape(sizes.rows, heads, length, length)[:MOST_ROWS, :MOST_HEADS, ::every]
    is_seen = (some > limit).any(1)
    return Seen(length, queries=queries.numpy(), keys=is_seen.numpy())
