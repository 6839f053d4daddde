"""A policy trained on pairs that prefers the rejected ones, or has no reference of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import BOTH, Advice
from smdebug_default_rules.policies.logged_numbers import RECENT, Logged, RuleOnLogged

LEAST_VALUES = 10
WRONG = 0.3
"""A policy that prefers the chosen one of fewer pairs than this does not guess: it learns the opposite."""
_TINY = 1e-6


_READ = (
    "Read a pair of the data: which completion is in the column chosen? Look at the sign in the loss, and at "
    "which log probabilities are those of the reference."
)
_COPY = (
    "Give the reference a copy of the weights of its own (copy.deepcopy(model)), or leave ref_model out "
    "where the model has adapters: the trainer switches them off."
)


@dataclass(frozen=True)
class _Problem:
    title: str
    statistic: str
    value: float
    limit: float
    message: str
    why: str
    advice: str


class Preferences(RuleOnLogged):
    """Fires when a policy learns to prefer rejected completions, or when its reference is the policy itself.

    The first needs ten logged values, with margins that fall. The second needs five: after the first update,
    the rewards of chosen and rejected completions are no longer equal, unless the reference moves, too.
    """

    cause = "preferences"
    modes = BOTH
    needs = "no margins of preferences were logged (rewards/margins, rewards/accuracies)"
    advice: ClassVar[Advice] = {"preferences": (_READ, _COPY)}

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        logged = self.grown(seen, "margin")
        if logged is None:
            return
        found = _problem(logged)
        self.since = (
            {}
            if found is None
            else {found.statistic: self.since.get(found.statistic, logged.since("margin"))}
        )
        if found is not None:
            yield self.finding(
                found.message,
                since=self.since[found.statistic],
                tensor=logged.name("margin"),
                statistic=found.statistic,
                value=found.value,
                limit=found.limit,
                title=found.title,
                why=(found.why,),
                advice=(found.advice,),
            )


def _problem(logged: Logged) -> _Problem | None:
    margins, preferred = logged.recent("margin"), logged.recent("preferred")
    if not margins or logged.count("margin") <= RECENT:
        return None
    if max(map(abs, margins)) <= _TINY:
        return _Problem(
            "The reference moves with the policy",
            "margin",
            margins[-1],
            0.0,
            f"The margin between chosen and rejected completions is exactly zero after "
            f"{logged.count('margin')} logged steps: the reference is the policy itself, and moves with it",
            f"{logged.name('margin')} is {margins[-1]:.3g} at {RECENT} logged steps in a row; it is 0 before "
            "the first update alone",
            _COPY,
        )
    is_enough = logged.count("preferred") >= LEAST_VALUES and preferred
    if is_enough and max(preferred) < WRONG and max(margins) < 0 and margins[-1] <= margins[0]:
        return _Problem(
            "The policy learns to prefer rejected completions",
            "preferred",
            preferred[-1],
            WRONG,
            f"The policy prefers the chosen completion in {preferred[-1]:.0%} of the pairs, and the margin "
            f"is {margins[-1]:.3g}: it learns the opposite of the preferences",
            f"The margin fell from {margins[0]:.3g} to {margins[-1]:.3g}; guessing prefers "
            "50% of the chosen ones",
            _READ,
        )
    return None
