"""Attention that sees what it should not, or not what it should."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.layers import undivided_scores
from smdebug_default_rules.tensors import Modules

LEAST_STEPS = 2
"""A problem is reported after this many checked steps in a row that show it."""
MOST_FUTURE = 0.5
"""The share of the tokens with a label that see a later one, at most."""

_FUTURE, _PADDING = "tokens that see a later one", "keys outside of the padding"
_ROWS, _AXIS = "length of attention", "products with weights that sum to 1 over the queries"
_CAUSAL = (
    "Mask what follows each token: is_causal=True for scaled_dot_product_attention, or a mask that is True, "
    "or minus infinity, above the diagonal (torch.triu(..., diagonal=1)) and that every layer is given."
)
_INVERT = (
    "Invert the mask: key_padding_mask of PyTorch is True for padding, attention_mask of transformers is 1 "
    "for tokens, and a boolean mask of scaled_dot_product_attention is True for what is seen."
)
_BATCH_FIRST = (
    "Give nn.MultiheadAttention and nn.TransformerEncoderLayer batch_first=True, or transpose their input to "
    "[tokens, rows, features]."
)
_LAST = (
    "Take the softmax of the scores [..., queries, keys] over the last axis, softmax(dim=-1): the one that "
    "is summed over when the values are multiplied."
)
LIMITS = {_FUTURE: MOST_FUTURE, undivided_scores.STATISTIC: undivided_scores.MOST_KEPT}


class Attention(DefaultRule):
    """Fires when attention sees the tokens that a model should predict, padding alone, or other rows.

    Also when its weights sum to 1 over the tokens that look, not over those that are looked at, and when its
    scores are not divided by the root of their width, so that an untrained model looks at few tokens.
    """

    cause = "attention"
    needs = "no attention over the tokens of the model's input was seen in the graph of the loss"
    advice: ClassVar[Advice] = {"attention": (_CAUSAL, _INVERT, _BATCH_FIRST)}

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.steps: dict[str, int] = {}
        self.since: dict[str, int] = {}

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        loss = seen.facts.get("loss") or {}
        attention = loss.get("attention")
        if not attention:
            self.looked = False
            return
        found = problems(attention, loss)
        share = undivided_scores.share_in(attention, is_known=undivided_scores.STATISTIC in self.steps)
        if share is not None:
            found[undivided_scores.STATISTIC] = share
        self.steps = {problem: self.steps.get(problem, 0) + 1 for problem in found}
        self.since = {problem: self.since.get(problem, seen.step) for problem in found}
        for problem, value in found.items():
            if self.steps[problem] >= LEAST_STEPS:
                yield self._finding(problem, value, attention, loss, seen)

    def _finding(
        self,
        problem: str,
        value: float,
        attention: Mapping[str, Any],
        loss: Mapping[str, Any],
        seen: ObservedStep,
    ) -> Finding:
        count, rows, tokens = attention["count"], attention["rows"], attention["tokens"]
        layers = (
            "The attention layer checked does not hide"
            if count == 1
            else (f"None of the {count} attention layers checked hides")
        )
        steps = f"{self.steps[problem]} checked steps in a row"
        if problem == _FUTURE:
            number = loss.get("value")
            now = "" if number is None else f"; the loss is {number:.4g} at step {seen.step}"
            message = f"Each label is the next token, and {value:.0%} of the tokens with one see later tokens"
            title, advice = "The model sees the tokens that it should predict", _CAUSAL
            why = f"{layers} what follows, at {steps}{now}"
        elif problem == _PADDING:
            message = "Attention has weights for the padding at the ends of rows, and none for their tokens"
            title, advice = "The padding mask is inverted", _INVERT
            why = f"0 tokens and all of the padding are seen in {rows} rows of {tokens}, at {steps}"
        elif problem == _AXIS:
            message = (
                "The weights of attention sum to 1 over the tokens that look, not over those that are looked "
                "at: what a token gets may be a multiple of the values, or nearly nothing"
            )
            title, advice = "Attention is normalised over the wrong axis", _LAST
            products = "1 product" if value == 1 else f"{value:.0f} products"
            why = f"The softmax before {products} with the values is over the last axis but one, at {steps}"
        elif problem == undivided_scores.STATISTIC:
            message, why = undivided_scores.words(attention, steps)
            title, advice = undivided_scores.TITLE, undivided_scores.ADVICE
        else:
            message = (
                f"Attention compares the {rows} rows of the batch with each other, not the {tokens} tokens "
                "of a row"
            )
            title, advice = "Attention mixes the rows of a batch", _BATCH_FIRST
            why = f"Weights of {rows} x {rows} for inputs of {rows} rows and {tokens} tokens, at {steps}"
        return self.finding(
            message,
            since=self.since[problem],
            tensor=Modules.of(seen).output,
            statistic=problem,
            value=value,
            limit=LIMITS.get(problem),
            title=title,
            why=(why,),
            advice=(advice,),
        )


def problems(attention: Mapping[str, Any], loss: Mapping[str, Any]) -> dict[str, float]:
    """Return what is wrong with what attention sees, each with its number."""
    found: dict[str, float] = {}
    rows, tokens = attention["rows"], attention["tokens"]
    following = (loss.get("tokens") or {}).get("equal") or (0, 0, 0)
    if following[1] == 1 and attention.get("future", 0) > MOST_FUTURE:
        found[_FUTURE] = attention["future"]
    if attention.get("padding_alone"):
        found[_PADDING] = 0.0
    if attention.get("over_queries"):
        found[_AXIS] = float(attention["over_queries"])
    labels = sum(int(term.get("rows") or 0) for term in (loss.get("terms") or ())[:1])
    is_time_second = following[1] == 1 or labels == rows
    if attention["lengths"] == [rows] and rows != tokens and is_time_second:
        found[_ROWS] = float(rows)
    return found
