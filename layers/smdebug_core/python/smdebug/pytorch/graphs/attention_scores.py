"""Scores of attention that nothing divides before their softmax, read off the graph of a loss.

Scores of queries and keys of d values each grow with the root of d. Where nothing divides them, the weights
of an attention that nobody has trained lie on few tokens. Nothing is said of scores that are multiplied with
what is learnt, or whose queries and keys are not what a layer returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from smdebug.pytorch.graphs.saved_values import constant_factor, operations, saved_value
from smdebug.pytorch.tensors.on_device import fetched

LEAST_TOKENS, LEAST_WIDTH, LEAST_WEIGHTS = 8, 4, 256
MOST_BETWEEN, NEAR = 12, 48
MOST_ATTENTIONS, MOST_QUERIES, MOST_WEIGHTS = 16, 24, 1 << 16
"""Of how many rows and heads, queries of each and weights of a layer some are looked at."""
_FUSED = "ScaledDotProduct"
_SHAPING = frozenset(
    f"{name}Backward{version}"
    for name in (
        "View",
        "UnsafeView",
        "ReshapeAlias",
        "Transpose",
        "Permute",
        "T",
        "Expand",
        "Clone",
        "Unsqueeze",
        "Squeeze",
        "Select",
        "Slice",
        "Split",
        "SplitWithSizes",
        "Unbind",
        "ToCopy",
        "Alias",
        "Cat",
        "Neg",
    )
    for version in (0, 1)
)
_MASKING = frozenset(("MaskedFillBackward0", "WhereBackward0", "AddBackward0", "SubBackward0"))
_LAYERS = ("AddmmBackward0", "MmBackward0")
_LEAF = "torch::autograd::AccumulateGrad"


class Unscaled(NamedTuple):
    """Queries and keys whose products are not divided."""

    factor: float
    """What their products are multiplied with: 1 where nothing does it."""
    query: torch.Tensor
    key: torch.Tensor
    """Both as [some, tokens, width]."""
    weights: Sequence[torch.Tensor]
    """Those of the layers that return them."""


def unscaled(softmax: Any) -> Unscaled | None:
    """Return the queries and keys of an attention that does not divide their products; None of any other."""
    product, factor = _product_of(softmax)
    if product is None:
        return None
    weights: list[torch.Tensor] = []
    for node, _ in product.next_functions[:2]:
        known = None if node is None else _from_layers(node)
        if known is None:
            return None
        factor *= known[0]
        weights += known[1]
    query, key = _operands(product)
    if query is None or key is None or abs(factor) < 1 or query.shape != key.shape or query.dim() != 3:
        return None
    is_large = query.shape[1] >= LEAST_TOKENS and query.shape[2] >= LEAST_WIDTH
    return Unscaled(factor, query, key, weights) if is_large and weights else None


def score_facts(found: Sequence[Unscaled | None]) -> Callable[[], dict[str, Any] | None] | None:
    """Measure attentions that divide nothing; None if there is one that is not known to be so.

    `kept` is the share of the tokens that a token looks at in effect, and `divided` that after a division by
    the root of the width. `is_even` is whether all weights of the layers look evenly drawn, as those are that
    nobody has trained.
    """
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    with torch.no_grad():
        shares = torch.stack([torch.stack(_shares(each)) for each in known]).mean(0)
        spreads = torch.cat([_evenness(weights) for each in known for weights in each.weights])
        read = fetched(torch.cat([shares, torch.stack(spreads.aminmax())]))
    first = known[0]

    def facts() -> dict[str, Any] | None:
        values = [float(value) for value in read()]
        if not all(map(math.isfinite, values)):
            return None
        kept, divided, *spread = values
        return {
            "factor": abs(first.factor),
            "tokens": int(first.query.shape[1]),
            "width": int(first.query.shape[2]),
            "kept": round(kept, 4),
            "divided": round(divided, 4),
            "is_even": all(abs(each - math.sqrt(3)) <= EVEN for each in spread),
        }

    return facts


EVEN = 0.05
"""How far the largest of evenly drawn weights, over their spread, is from the root of 3 at most."""


def _shares(attention: Unscaled) -> tuple[torch.Tensor, torch.Tensor]:
    some, tokens, width = attention.query.shape
    chosen = slice(None, None, -(-some // MOST_ATTENTIONS))
    queries = attention.query[chosen, :: -(-tokens // MOST_QUERIES)].float()
    scores = queries @ attention.key[chosen].float().transpose(1, 2)
    return _share(scores * attention.factor), _share(scores / math.sqrt(width))


def _share(scores: torch.Tensor) -> torch.Tensor:
    """The share of the tokens that the weights lie on, by their entropy."""
    logarithms = scores.log_softmax(-1)
    entropy = -(logarithms.exp() * logarithms).sum(-1)
    return entropy.exp().mean() / scores.shape[-1]


def _evenness(weights: torch.Tensor) -> torch.Tensor:
    values = weights.reshape(-1)
    values = values[:: -(-values.numel() // MOST_WEIGHTS)].float()
    return (values.abs().amax() / values.std()).reshape(1)


def _product_of(node: Any) -> tuple[Any, float]:
    """The product of queries and keys that an attention begins with, and the constant on the way to it."""
    if node.name().startswith(_FUSED):
        try:
            scale = node._saved_scale
        except (AttributeError, RuntimeError):
            return None, 1.0
        return (node, float(scale)) if isinstance(scale, int | float) else (None, 1.0)
    factor = 1.0
    for _ in range(MOST_BETWEEN):
        others = [function for function, _ in node.next_functions if function is not None]
        if len(others) != 1:
            break
        node = others[0]
        name = node.name()
        if name == "BmmBackward0":
            return node, factor
        if name in ("MulBackward0", "DivBackward0"):
            by = _constant(node)
            if by is None:
                break
            factor *= by
        elif name not in _SHAPING and name not in _MASKING:
            break
    return None, 1.0


def _operands(product: Any) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    if product.name().startswith(_FUSED):
        query, key = (saved_value(product, name) for name in ("_saved_query", "_saved_key"))
        if query is None or key is None or query.dim() != 4 or query.shape != key.shape:
            return None, None
        return query.flatten(0, 1), key.flatten(0, 1)
    query, key = saved_value(product, "_saved_self"), saved_value(product, "_saved_mat2")
    return query, None if key is None else key.transpose(1, 2)


def _from_layers(root: Any) -> tuple[float, list[torch.Tensor]] | None:
    """Return the constant that what layers return is multiplied with, and their weights.

    None if something else happens to it, such as a normalisation. A product with values of -1 to 1 may be a
    rotation by the place of the token.
    """
    factor = 1.0
    weights: list[torch.Tensor] = []
    nodes = [*operations(root, NEAR, lambda name: name not in _LAYERS)]
    if len(nodes) == NEAR:  # there may be more
        return None
    for node in nodes:
        name = node.name()
        if name in _LAYERS:
            if (weight := _weight_of(node)) is None:
                return None
            weights.append(weight)
        elif name in ("MulBackward0", "DivBackward0"):
            by = 1.0 if name == "MulBackward0" and _is_rotation(node) else _constant(node)
            if by is None:
                return None
            factor *= by
        elif name == _LEAF:
            if node.variable.dim() != 1:  # more than a bias
                return None
        elif name not in _SHAPING and name not in ("AddBackward0", "SubBackward0"):
            return None
    return factor, weights


def _weight_of(layer: Any) -> torch.Tensor | None:
    leaves = [
        node.variable.detach()
        for before, _ in layer.next_functions
        if before is not None
        for node in operations(before, 2, "TBackward0".__eq__)
        if node.name() == _LEAF and node.variable.dim() == 2
    ]
    is_large = len(leaves) == 1 and leaves[0].numel() >= LEAST_WEIGHTS
    return leaves[0] if is_large and leaves[0].is_floating_point() else None


def _constant(node: Any) -> float | None:
    """The number that a product or a quotient multiplies what is learnt with; None if there is none."""
    others = [function for function, _ in node.next_functions if function is not None]
    by = constant_factor(node)
    if by is None or len(others) != 1:
        return None
    return 1 / by if node.name() == "DivBackward0" else by


def _is_rotation(node: Any) -> bool:
    others = [function for function, _ in node.next_functions if function is not None]
    values = saved_value(node, "_saved_other")
    if len(others) != 1 or values is None or not values.is_cpu or not 1 < values.numel() <= MOST_WEIGHTS:
        return False
    return float(values.abs().amax()) <= 1.001
