"""A policy trained on pairs that prefers the rejected ones, or has no reference of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import BOTH, Advice
from smdebug_default_rules.policies.logged_numbers import RECENT, Logged, RuleOnLogged

LEAST_VALUES = 10
WRONG = 0.3
"""A policy that prefers the chosen one of fewer pairs than this does not guess: it learns the opposite."""
_TINY = 1e-6


class Preferences(RuleOnLogged):
    """Fires when a policy learns to prefer rejected completions, or when its reference is the policy itself.

    The first needs ten logged values, with margins that fall. The second needs five: after the first update,
    the rewards of chosen and rejected completions are no longer equal, unless the reference moves, too.
    """

    cause = "preferences"
    modes = BOTH
    needs = "no margins of preferences were logged (rewards/margins, rewards/accuracies)"
    advice: ClassVar[Advice] = {
        "preferences": (
            "Read a pair of the data: which completion is in the column chosen? Look at the sign in the "
            "loss, and at which log probabilities are those of the reference.",
            "Give the reference a copy of the weights of its own (copy.deepcopy(model)), or leave ref_model "
            "out where the model has adapters: the trainer switches them off.",
        )
    }

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        logged = self.grown(seen, "margin")
        if logged is None:
            return
        found = _problem(logged)
        self.since = {} if found is None else {found[0]: self.since.get(found[0], logged.since("margin"))}
        if found is not None:
            message, value, limit = found[1:]
            yield self.finding(
                message,
                since=self.since[found[0]],
                tensor=logged.name("margin"),
                statistic=found[0],
                value=value,
                limit=limit,
            )


def _problem(logged: Logged) -> tuple[str, str, float, float] | None:
    margins, preferred = logged.recent("margin"), logged.recent("preferred")
    if not margins or logged.count("margin") <= RECENT:
        return None
    if max(map(abs, margins)) <= _TINY:
        return (
            "margin",
            f"The margin between chosen and rejected completions is exactly zero after "
            f"{logged.count('margin')} logged steps: the reference is the policy itself, and moves with it",
            margins[-1],
            0.0,
        )
    is_enough = logged.count("preferred") >= LEAST_VALUES and preferred
    if is_enough and max(preferred) < WRONG and max(margins) < 0 and margins[-1] <= margins[0]:
        return (
            "preferred",
            f"The policy prefers the chosen completion in {preferred[-1]:.0%} of the pairs, and the margin "
            f"is {margins[-1]:.3g}: it learns the opposite of the preferences",
            preferred[-1],
            WRONG,
        )
    return None
