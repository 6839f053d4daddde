"""Labels of a language model that are shifted or masked wrongly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.tensors import Modules

LEAST_STEPS = 3
"""A problem is reported after this many saved steps in a row that show it."""
MOST_PADDING = 0.05
"""The share of the labels that count and are padding, at most."""
OTHER = 0.9
"""Labels that are two tokens ahead are not the next token, too, at more than this share."""
LEAST_ENDS = 8
MOST_OF_A_CLASS = 0.2
"""The share of the labels that count and are the class of padding, at most."""

_TWICE, _PADDING = "labels that are the next token", "labels that are padding"
_CLASS = "labels that are the class of padding"
_ENDS, _IGNORED = "ends of texts that are learned", "labels that are ignored"


_SHIFT = (
    "Shift labels once: models of transformers shift labels themselves, so give them "
    "labels equal to input_ids."
)
_BY_MASK = (
    "Ignore padding by the mask, not by its id: labels[attention_mask == 0] = -100. Where pad_token is "
    "eos_token, the end of text is ignored otherwise, and the model never learns to stop."
)
_BY_ID = (
    "Give the loss ignore_index={id}, which the embedding has for padding (padding_idx), or set those labels "
    "to -100."
)
_BY_CLASS = (
    "Give the loss ignore_index={label}, the class of padding, or set those labels to -100, and leave them "
    "out of the accuracy as well."
)
_NO_LABEL = "If no label counts, look at the template that finds the answer, and at truncation (max_length)."
_TITLES = {
    _TWICE: "Labels are shifted twice",
    _PADDING: "Padding is learned",
    _CLASS: "Padding is learned",
    _ENDS: "The end of text is never learned",
    _IGNORED: "All labels are ignored",
}
_CLASSES_IGNORED = (
    "Compare the labels with ignore_index: all of them have that value. Look at what fills them, such as a "
    "mask that is inverted, a file without annotations or labels that were never set."
)
_TOKENS_IGNORED = (
    "Look at what masks the labels: a template that does not find the answer in the text, or truncation "
    "(max_length) that cuts the answer off."
)


class TokenLabels(DefaultRule):
    """Fires when labels of tokens are shifted twice, count padding, lack the end of text, or are all ignored.

    Each has to be seen at three saved steps in a row. Padding and ends are known where the model is given a
    mask of its tokens, or its embedding has the id of padding (PyTorch: `padding_idx`), and the criterion
    takes the mean or the sum itself. Tags count padding where it has a class of its own that is not ignored.
    """

    cause = "token labels"
    needs = "no loss was computed from labels of the tokens that the model was given"
    advice: ClassVar[Advice] = {
        "token labels": (
            _SHIFT,
            _BY_MASK,
            _NO_LABEL,
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.steps: dict[str, int] = {}
        self.since: dict[str, int] = {}
        self.ends = 0
        """How many ends of texts there were at the steps in a row that learned none."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        loss = seen.facts.get("loss") or {}
        terms = loss.get("terms") or []
        tokens = loss.get("tokens") or {}
        share = terms[0].get("ignored") if len(terms) == 1 else None
        if share is None or not (tokens or share == 1):
            self.looked = False
            return
        is_reduced = terms[0].get("reduction") != "none"  # a mask may follow, which says what counts
        found = {_IGNORED: (share, 1.0)} if share == 1 else self._of_tokens(tokens, is_reduced, terms[0])
        self.steps = {problem: self.steps.get(problem, 0) + 1 for problem in found}
        self.since = {problem: self.since.get(problem, seen.step) for problem in found}
        for problem, (value, limit) in found.items():
            if self.steps[problem] < LEAST_STEPS or (problem == _ENDS and self.ends < LEAST_ENDS):
                continue
            yield self.finding(
                self._message(problem, value),
                since=self.since[problem],
                tensor=Modules.of(seen).input,
                statistic=problem,
                value=value,
                limit=limit,
                title=_TITLES[problem],
                why=self._numbers(problem, value, terms[0]),
                advice=(_advice(problem, tokens),),
            )

    def _of_tokens(
        self, tokens: dict[str, Any], is_reduced: bool, term: Mapping[str, Any]
    ) -> dict[str, tuple[float, float]]:
        found: dict[str, tuple[float, float]] = {}
        _, following, second = tokens["equal"]
        if second == 1 and following < OTHER:
            found[_TWICE] = (following, 1.0)
        if not is_reduced:
            return found
        if tokens.get("padding_class") is not None:
            if tokens.get("padding", 0) > MOST_OF_A_CLASS and _counts(term, tokens["padding_class"]):
                found[_CLASS] = (tokens["padding"], MOST_OF_A_CLASS)
        elif tokens.get("padding", 0) > MOST_PADDING:
            found[_PADDING] = (tokens["padding"], MOST_PADDING)
        ends = tokens.get("ends", 0)
        self.ends = 0 if not ends or tokens["ends_learned"] else self.ends + ends
        if self.ends:
            found[_ENDS] = (0.0, 1.0)
        return found

    def _numbers(self, problem: str, value: float, term: Mapping[str, Any]) -> tuple[str, ...]:
        if problem == _TWICE:
            return (f"100% of the labels are the token two places ahead, {value:.0%} the next one",)
        if problem == _PADDING:
            return (f"At most {MOST_PADDING:.0%} of the labels that count should be padding",)
        if problem == _CLASS:
            return (f"A model that knows padding alone is right about {value:.0%} of the labels",)
        if problem == _ENDS:
            return (
                f"0 of {self.ends} ends of texts are learned, at {self.steps[problem]} saved steps in a row",
            )
        return (
            f"0 of the labels count in a batch of {term.get('rows') or '?'} rows: the mean of nothing is NaN",
        )

    def _message(self, problem: str, value: float) -> str:
        if problem == _TWICE:
            return (
                "Each label is the token two places after its input: labels are shifted twice. Only "
                f"{value:.0%} are the next token"
            )
        if problem == _PADDING:
            return (
                f"{value:.0%} of the labels that count are padding, which follows padding: it is not ignored"
            )
        if problem == _CLASS:
            return (
                f"{value:.0%} of the labels that count are those of padding, which has a class of its own: "
                "it is not ignored"
            )
        if problem == _ENDS:
            return (
                f"None of {self.ends} ends of texts is among the labels that count, although the token "
                "before is: padding has the same id and is ignored by it"
            )
        return f"All labels are ignored at {self.steps[_IGNORED]} saved steps in a row: the loss has no terms"


def _advice(problem: str, tokens: Mapping[str, Any]) -> str:
    if problem == _TWICE:
        return _SHIFT
    if problem == _IGNORED:
        return _TOKENS_IGNORED if tokens else _CLASSES_IGNORED
    if problem == _CLASS:
        return _BY_CLASS.format(label=tokens["padding_class"])
    if tokens.get("padding_id") is not None:
        return _BY_ID.format(id=tokens["padding_id"])
    return _BY_MASK


def _counts(term: Mapping[str, Any], label: int) -> bool:
    """Whether a class has a weight above zero in the loss."""
    weights = term.get("weights")
    return not weights or label >= len(weights) or weights[label] > 0
