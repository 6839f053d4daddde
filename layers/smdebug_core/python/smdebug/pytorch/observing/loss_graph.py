"""What a loss was computed from, read off the graph that its backward pass will follow.

Criteria leave their name, their targets and the preceding function in the graph, whether they are modules,
functions or parts of a sum. It has to be read before the backward pass, which frees its contents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from smdebug.numbers.loss_terms import ABSOLUTE, DIVERGENCE, HUBER, SMOOTH, SQUARED
from smdebug.pytorch.graphs.saved_values import constant_factor, operations
from smdebug.pytorch.observing import divergences
from smdebug.pytorch.observing.absolute_errors import Compared
from smdebug.pytorch.observing.written_errors import written_error
from smdebug.pytorch.tensors.rows import signed

MAX_NODES = 300
"""A loss that is computed from more than this many operations is described as far as they go."""
MAX_TERMS = 8
MAX_PARTS = 16

CROSS_ENTROPY = "cross entropy"
_OF_COMPARED = (
    "MeanBackward0",
    "SumBackward0",
    "MulBackward0",
    "AbsBackward0",
    "PowBackward0",
    "SubBackward0",
    "ExpandBackward0",
)
_CRITERIA = {
    "NllLossBackward0": CROSS_ENTROPY,
    "NllLoss2DBackward0": CROSS_ENTROPY,
    "NllLossNdBackward0": CROSS_ENTROPY,
    "MseLossBackward0": SQUARED,
    "SmoothL1LossBackward0": SMOOTH,
    "HuberLossBackward0": HUBER,
    "BinaryCrossEntropyBackward0": "binary cross entropy",
    "BinaryCrossEntropyWithLogitsBackward0": "binary cross entropy with logits",
    "KlDivBackward0": DIVERGENCE,
}
_SCALING = ("DivBackward0", "MulBackward0", "MulBackward1", "DivBackward1")
_NEGATION, _ADDITION = "NegBackward0", "AddBackward0"
WITHOUT_GRADIENT, WITHOUT_WEIGHT = "no gradient", "weight 0"
_RESHAPING = (
    "ViewBackward0",
    "ReshapeAliasBackward0",
    "UnsafeViewBackward0",
    "TransposeBackward0",
    "PermuteBackward0",
    "SqueezeBackward1",
    "UnsqueezeBackward0",
    "SliceBackward0",
    "ToCopyBackward0",
    "CloneBackward0",
    "AliasBackward0",
    "FlattenBackward0",
)
_PICKING = ("SelectBackward0", "SqueezeBackward0")
_LAYERS = ("AddmmBackward0", "MmBackward0", "BmmBackward0", "ConvolutionBackward0")
"""Operations of the layers that a model mostly ends with."""
_ENDINGS = ("SigmoidBackward0", "TanhBackward0", "SoftplusBackward0", "ReluBackward0")
_REDUCTIONS = {0: "none", 1: "mean", 2: "sum"}
RAW_OUTPUTS, PROBABILITIES = "raw outputs", "probabilities"
_MADE = {
    "ReluBackward0": "relu",
    "SoftmaxBackward0": "softmax",
    "SigmoidBackward0": "sigmoid",
    "LogSoftmaxBackward0": "log-softmax",
}


_SOFTMAXES = ("SoftmaxBackward0", "LogSoftmaxBackward0")
_KEEPING_FROM_ZERO = ("AddBackward0", "ClampBackward1", "ClampMinBackward0", "ClampBackward0")
_NO_LOGARITHMS = {
    "SoftmaxBackward0": PROBABILITIES,
    "SigmoidBackward0": PROBABILITIES,
    **dict.fromkeys(
        ("AddmmBackward0", "MmBackward0", "BmmBackward0", "ConvolutionBackward0", "ReluBackward0"),
        RAW_OUTPUTS,
    ),
}
"""Possible inputs of a negative log-likelihood that lack a logarithm."""


class Normalised(NamedTuple):
    """An axis that a softmax was taken over although the classes lie along another one."""

    axis: int
    length: int


class LossTerm(NamedTuple):
    """One criterion of a loss."""

    criterion: str
    given: str
    """What the criterion was given: `softmax`, `sigmoid`, `log-softmax`, `relu`, or "" for anything else.

    A negative log-likelihood without a logarithm before it was given `raw outputs` or `probabilities`.
    """
    rows: int
    classes: int
    targets: torch.Tensor | None
    """The targets of a classification, one integer a row."""
    numbers: torch.Tensor | None = None
    """The targets of a regression or of yes-or-no labels."""
    reduction: str = ""
    is_weighted: bool = False
    """Whether classes or values have weights in the loss."""
    ignored: int | None = None
    """The class that does not count."""
    is_of_a_layer: bool = False
    """Whether the criterion was given what a layer returned, and nothing was computed in between."""
    normalised: Normalised | None = None
    """The axis of a softmax before the criterion, where that is not the axis of the classes."""
    knee: float | None = None
    """Below this, an absolute error counts as a square: 0 if none does, and None of other criteria."""
    weights: torch.Tensor | None = None
    """The weight of each class of a cross entropy, or of the positives of yes-or-no labels."""


class LossGraph(NamedTuple):
    """What is known of how a loss was computed."""

    terms: tuple[LossTerm, ...]
    factor: float
    """What the loss was multiplied with after its criteria: 0.25 where it was divided by 4, -1 by a minus."""
    broadcast: tuple[int, ...] | None
    """The shape of differences between a column and a row, which no training wants."""
    is_whole: bool = False
    """Whether the loss is its one criterion, times the factor, and nothing else."""
    idle: str = ""
    """Why a part of the sum teaches nothing: `no gradient`, `weight 0`, or "" if each part has an effect."""


def describe(
    loss: torch.Tensor, absolute: Sequence[Compared] = (), outputs: Sequence[torch.Tensor] = ()
) -> LossGraph | None:
    """Describe a loss before its backward pass; None if it has no graph.

    `absolute` are the absolute errors that were computed before, and `outputs` what models returned.
    """
    root: Any = loss.grad_fn
    if root is None:
        return None
    if _CRITERIA.get(root.name()) == CROSS_ENTROPY:  # as mostly: nothing lies around it
        return LossGraph((_term(root, CROSS_ENTROPY),), 1.0, None, is_whole=True)
    factor, start = _unscaled(root)
    terms: list[LossTerm] = []
    apart: list[LossTerm] = []
    broadcast, reduction = None, ""
    known = {each.node: each for each in absolute}
    is_known = any(node in known for node in (start, *(before for before, _ in start.next_functions)))
    if outputs and not is_known and (written := written_error(start, outputs)) is not None:
        known[start] = written
    for node in operations(start, MAX_NODES, lambda name: name not in _CRITERIA):
        name = node.name()
        criterion = _CRITERIA.get(name)
        if criterion is not None and len(terms) < MAX_TERMS:
            terms.append(_term(node, criterion))
        elif node in known and len(terms) < MAX_TERMS:
            terms.append(_compared_term(node, known[node]))
        elif (predictions := divergences.compared(node)) is not None:
            reduction = reduction or divergences.reduction_of(start, node)
            apart.append(_divergence_term(predictions, reduction))
        compares = name == "SubBackward0" or criterion not in (None, CROSS_ENTROPY)
        if broadcast is None and compares:
            broadcast = _broadcast(node) or _expanded(node)
    is_whole = start.name() in _CRITERIA or start in known or bool(reduction)
    if is_whole or terms:  # beside what is not known, a divergence may be a small part
        terms += apart[: MAX_TERMS - len(terms)]
    return LossGraph(tuple(terms), factor, broadcast, is_whole, "" if is_whole else _idle(start))


def _idle(start: Any) -> str:
    """Return why a part of a sum teaches nothing; "" if that is true of none."""
    found = ""
    for node in operations(start, MAX_PARTS, _ADDITION.__eq__):
        name = node.name()
        if name == _ADDITION and any(following is None for following, _ in node.next_functions):
            found = found or WITHOUT_GRADIENT
        elif name == "MulBackward0" and _has_zero(node):
            found = WITHOUT_WEIGHT
    return found


def _has_zero(node: Any) -> bool:
    try:
        other = node._saved_other
    except (AttributeError, RuntimeError):
        return False
    if isinstance(other, torch.Tensor):
        return (
            other.numel() == 1 and other.device.type == "cpu" and not other.requires_grad and not other.item()
        )
    return isinstance(other, int | float) and not other


def _unscaled(node: Any) -> tuple[float, Any]:
    """Return the constant factor of the root, and the node that computes the other factor."""
    factor = 1.0
    while node.name() in (*_SCALING, _NEGATION):
        others = [following for following, _ in node.next_functions if following is not None]
        constant = -1.0 if node.name() == _NEGATION else constant_factor(node)
        if constant is None or len(others) != 1:
            break
        factor = factor / constant if node.name().startswith("Div") else factor * constant
        node = others[0]
    return factor, node


def _term(node: Any, criterion: str) -> LossTerm:
    given = softmax = _before(node)
    classes = rows = 0
    unlogged = ""
    if criterion == CROSS_ENTROPY and given is not None:
        if given.name() == "LogSoftmaxBackward0":
            given = _before(given)  # which belongs to the criterion: its input lies before it
            if given is not None and given.name() in _SOFTMAXES:
                softmax = given
        else:
            unlogged = _NO_LOGARITHMS.get(given.name(), "")
    targets = _saved(node, "_saved_target")
    scores = _saved(node, "_saved_self")
    if scores is not None and scores.dim():
        rows = int(scores.shape[0])
        classes = int(scores.shape[1]) if scores.dim() > 1 else 1
    numbers = targets if targets is not None and targets.is_floating_point() else None
    if numbers is not None or criterion != CROSS_ENTROPY:
        targets = None
    made = _MADE.get(given.name(), "") if given is not None else ""
    weights = _saved(node, "_saved_weight" if criterion == CROSS_ENTROPY else "_saved_pos_weight")
    return LossTerm(
        criterion,
        unlogged or made,
        rows,
        classes,
        targets,
        numbers,
        _REDUCTIONS.get(getattr(node, "_saved_reduction", -1), ""),
        weights is not None or _saved(node, "_saved_weight") is not None,
        _ignored(node),
        _is_of_a_layer(given),
        _normalised(softmax, classes),
        _knee(node, criterion),
        weights,
    )


def _divergence_term(predictions: Any, reduction: str) -> LossTerm:
    result = _saved(predictions, "_saved_result")
    rows = int(result.shape[0]) if result is not None and result.dim() else 0
    given = _MADE[predictions.name()]
    return LossTerm(DIVERGENCE, given, rows, 0, None, None, reduction or "none")


def _knee(node: Any, criterion: str) -> float | None:
    if criterion not in (SMOOTH, HUBER):
        return None
    try:
        return float(node._saved_beta if criterion == SMOOTH else node._saved_delta)
    except (AttributeError, RuntimeError, TypeError):
        return None


def _compared_term(node: Any, error: Compared) -> LossTerm:
    while node is not None and node.name() in _OF_COMPARED:
        node = _before(node)
    return LossTerm(
        error.criterion,
        _MADE.get(node.name(), "") if node is not None else "",
        error.rows,
        error.columns,
        None,
        error.targets,
        error.reduction,
        error.is_weighted,
        is_of_a_layer=_is_of_a_layer(node),
        knee=0.0 if error.criterion == ABSOLUTE else None,
    )


def _normalised(node: Any, classes: int) -> Normalised | None:
    """The axis that a softmax was taken over, if that is certainly not the axis of the classes."""
    if node is not None and node.name() == "LogBackward0":
        node = _before(node)
        if node is not None and node.name() in _KEEPING_FROM_ZERO:
            node = _before(node)
    if node is None or node.name() not in _SOFTMAXES:
        return None
    shape = _shape(node)
    if shape is None:
        return None
    try:
        axis = int(node._saved_dim)
    except (AttributeError, RuntimeError, TypeError):
        return None
    return wrong_axis(shape, signed(axis), classes)


def wrong_axis(shape: tuple[int, ...], axis: int, classes: int) -> Normalised | None:
    """Return the axis of a softmax if it is not as long as there are classes, and another one is."""
    if len(shape) < 2 or classes < 2 or not -len(shape) <= axis < len(shape):
        return None
    length = shape[axis]
    if length == classes or classes not in shape:
        return None
    return Normalised(axis % len(shape), length)


def _ignored(node: Any) -> int | None:
    """The class that a cross entropy ignores; PyTorch shows -100 as a number without a sign."""
    try:
        ignored = int(node._saved_ignore_index)
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return None
    return signed(ignored)


def _is_of_a_layer(given: Any) -> bool:
    """Whether that is the operation of a layer, past the activation that it may end with."""
    if given is not None and given.name() in _PICKING:
        given = _before(given)
    if given is not None and given.name() in _ENDINGS:
        given = _before(given)
    if given is not None and given.name() == "AddBackward0":  # a bias, of inputs in another order in memory
        others = [following for following, _ in given.next_functions if following is not None]
        if len(others) == 2 and others[1].name() == "torch::autograd::AccumulateGrad":
            given = _before(given)
    return given is not None and given.name() in _LAYERS


def _before(node: Any) -> Any:
    """The operation whose result the node was given, past those that change the shape alone."""
    steps = 0
    following = [function for function, _ in node.next_functions if function is not None]
    while following and following[0].name() in _RESHAPING and steps < MAX_NODES:
        following = [function for function, _ in following[0].next_functions if function is not None]
        steps += 1
    return following[0] if following else None


def _saved(node: Any, name: str) -> torch.Tensor | None:
    try:
        value = getattr(node, name)
    except (AttributeError, RuntimeError):  # changed in place since, or freed
        return None
    return value.detach() if isinstance(value, torch.Tensor) else None


def _broadcast(node: Any) -> tuple[int, ...] | None:
    """The shape of the node's result, if it is the difference of a column and a row of targets."""
    result = _shape(node)
    if result is None or len(result) != 2 or result[0] != result[1] or result[0] < 2:
        return None
    inputs = [_shape(following) for following, _ in node.next_functions if following is not None]
    return result if inputs == [(result[0], 1)] else None  # targets have no gradient


def _expanded(node: Any) -> tuple[int, ...] | None:
    """The shape that a criterion expanded its input to, if that compares each row with every target.

    Criteria expand input and target to one shape first: [N] beside [N, 1] becomes [N, N].
    """
    followed = [following for following, _ in node.next_functions if following is not None]
    if len(followed) != 1 or followed[0].name() != "ExpandBackward0":  # targets have no gradient
        return None
    made = _shape(followed[0])
    given = [_shape(before) for before, _ in followed[0].next_functions if before is not None]
    if made is None or len(made) != 2 or made[0] != made[1] or made[0] < 2:
        return None
    return made if given in ([(made[0],)], [(made[0], 1)]) else None


def _shape(node: Any) -> tuple[int, ...] | None:
    try:
        return tuple(int(length) for length in node._input_metadata[0].shape)
    except (AttributeError, IndexError, TypeError, RuntimeError):  # PyTorch 2.1 lacks it
        return None
