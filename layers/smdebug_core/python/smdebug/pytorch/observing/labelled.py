"""Losses that a language model computes of `labels` itself, without a criterion that could be seen.

By the convention of transformers, labels lie at the places of the tokens, the model shifts them, and -100
does not count. A fused head, as of TRL, computes no logits and calls no criterion: what the model returns,
its `loss` or the `log_probs` of the labels, is found in the graph of the loss instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from smdebug.pytorch.observing.loss_graph import CROSS_ENTROPY, LossGraph, LossTerm

_IGNORED = -100
_CAUSAL = ("ForCausalLM", "ForConditionalGeneration")
_OLD_CAUSAL = "LMHeadModel"
"""The end of the names of such models that say no kind, such as GPT-2."""
_MOST = 16
"""How many operations lie between a loss and what the model returned, at most."""
_REDUCTIONS = {"MeanBackward0": "mean", "SumBackward0": "sum"}
_SCALING, _NEGATION = ("DivBackward0", "MulBackward0", "MulBackward1"), "NegBackward0"
_PASSING = (*_SCALING, _NEGATION, "ToCopyBackward0", "ViewBackward0", "SqueezeBackward0")


class Labelled(NamedTuple):
    """Labels that a model was given, and where its graph has what it returned for them."""

    labels: torch.Tensor
    classes: int
    loss: Any
    log_probabilities: Any


def shifts_labels(module: nn.Module) -> bool:
    """Whether that is a causal language model of transformers, or has one inside, as those of PEFT."""
    kind = getattr(module, "loss_type", None)
    if kind is None and type(module).__name__.endswith(_OLD_CAUSAL) and hasattr(module, "loss_function"):
        kind = _CAUSAL[0]  # as transformers takes it
    if kind not in _CAUSAL:
        return False
    return not getattr(getattr(module, "config", None), "is_encoder_decoder", False)


def labelled(module: nn.Module, labels: torch.Tensor, output: Any) -> Labelled | None:
    """Return the labels that a model was given, beside what it returned; None if that has no graph."""
    if labels.dim() != 2 or labels.is_floating_point() or labels.shape[1] < 2:
        return None
    loss, scores = (_node(returned(output, name)) for name in ("loss", "log_probs"))
    if loss is None and scores is None:
        return None
    config: Any = getattr(module, "config", None)
    described = getattr(config, "get_text_config", lambda: config)()
    return Labelled(labels, int(getattr(described, "vocab_size", 0) or 0), loss, scores)


def returned(output: Any, name: str) -> Any:
    """Return the part of that name of what a model has returned; None if there is none."""
    return output.get(name) if isinstance(output, Mapping) else None


def with_labels(graph: LossGraph | None, loss: torch.Tensor, given: Labelled | None) -> LossGraph | None:
    """Add the term of the labels, if the loss is that of the model and no criterion was seen in it."""
    if graph is None or given is None or graph.terms:
        return graph
    made = _made_of(loss.grad_fn, given)
    if made is None:
        return graph
    rows, columns = given.labels.shape
    targets = torch.constant_pad_nd(given.labels, (-1, 1), _IGNORED)  # the label of each place is the next
    term = LossTerm(
        CROSS_ENTROPY,
        "",
        rows * columns,
        given.classes,
        targets.reshape(-1),
        None,
        made.reduction,
        made.is_weighted,
        _IGNORED,
        is_of_a_layer=True,
    )
    return graph._replace(terms=(term,), factor=made.sign * abs(graph.factor), is_whole=True, idle="")


class _Made(NamedTuple):
    sign: int
    """-1 where the loss is what the model returned with a minus."""
    reduction: str
    is_weighted: bool


def _made_of(node: Any, given: Labelled) -> _Made | None:
    """How the loss was made of what the model returned; None if it was not, or of something else, too."""
    sign, reduction, is_weighted, is_found, result = 1, "", False, False, 1
    for _ in range(_MOST):
        if node is given.loss and not is_found:
            is_found, result = True, sign
        if node is given.log_probabilities and not is_found and reduction:
            is_found, result = True, -sign  # they are negative
        if node is None or node is given.log_probabilities:
            break
        name = node.name()
        following = [before for before, _ in node.next_functions if before is not None]
        if len(following) != 1 or not (name in _REDUCTIONS or name in _PASSING):
            break
        is_weighted = is_weighted or (bool(reduction) and name in _SCALING)
        reduction = _REDUCTIONS.get(name, reduction)
        sign = -sign if name == _NEGATION else sign
        node = following[0]
    return _Made(result, reduction, is_weighted) if is_found else None


def _node(value: Any) -> Any:
    return value.grad_fn if isinstance(value, torch.Tensor) else None
