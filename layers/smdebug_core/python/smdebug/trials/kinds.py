"""The kinds of tensors, in the one order in which pages, reports and commands list them."""

from __future__ import annotations

from collections.abc import Iterable

KINDS = (
    "gradients",
    "updates",
    "parameters",
    "weights",
    "biases",
    "outputs",
    "inputs",
    "layers",
    "optimizer_variables",
)
"""As a training goes wrong: what is computed last shows a problem first."""
COMPUTED = ("inputs", "outputs", "gradients", "updates", "parameters")
"""As a step computes them."""


def in_kind_order(kinds: Iterable[str]) -> list[str]:
    """Return kinds or collections in that order; others keep theirs, and come last."""
    return sorted(kinds, key=lambda kind: KINDS.index(kind) if kind in KINDS else len(KINDS))
