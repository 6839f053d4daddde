"""A policy that gets no advantage, trains on stale completions, or loses its diversity or its reference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import BOTH, Advice
from smdebug_default_rules.policies import policy_loss
from smdebug_default_rules.policies.logged_numbers import RECENT, Logged, RuleOnLogged

ALL_GROUPS = 0.95
"""The share of groups without a spread from which there is no advantage to speak of."""
LARGE_GAP, GAP_GROWTH, LEAST_GAP = 0.15, 5.0, 0.05
"""Log probabilities of trainer and sampler differ by hundredths if they have the same weights."""
RATIOS = (0.8, 1.25)
"""The mean of the ratio of two distributions is one; truncated ratios are a little lower."""
COLLAPSED = 0.1
"""Of an entropy, this share is left where a policy always writes the same."""
LEAST_ENTROPY = 0.05
LARGE_DIVERGENCE, DIVERGENCE_GROWTH = 3.0, 10.0
"""In nats per token: the text is far from what the reference writes."""
NOTHING_GAINED = 2.0
"""A reward has not risen if it is within this many spreads of where it started."""


@dataclass(frozen=True)
class _Problem:
    cause: str
    quantity: str
    value: float
    limit: float
    message: str
    why: str
    first: int = 0
    """Which advice of its cause helps first."""


class PolicyLearning(RuleOnLogged):
    """Fires when the numbers of a policy's training say that it cannot learn, or loses what it could.

    The rewards of all groups are equal; completions come from other weights; entropy collapses or the
    divergence from the reference explodes while the reward has not risen. Five logged values in a row have
    to say so. Numbers have the names of TRL, verl and others,
    or are logged under them: smdebug.log(reward=…, kl=…). From the loss itself, if it has an entropy and the
    probabilities of chosen actions, it is known whether the entropy is punished, and whether all advantages
    are the same.
    """

    cause = "policy collapse"
    modes = BOTH
    needs = "no reward was logged (reward, critic/score/mean, …), and no loss has an entropy and advantages"
    advice: ClassVar[Advice] = {
        "no advantage": (
            "Call the reward function on some completions: it has to tell better from worse within a group. "
            "An answer that cannot be parsed is often worth 0 like every other.",
            "Choose prompts that are solved sometimes, sample more completions per prompt (num_generations), "
            "or leave groups out whose rewards are all equal.",
        ),
        "stale rollouts": (
            "Give the sampler the new weights before each generation, and look at what its engine keeps: "
            "caches of prefixes, a copy that is quantised, a sync that failed.",
            "Compute old log probabilities with the temperature, the chat template and the mask with which "
            "completions were sampled.",
        ),
        "policy collapse": (
            "Check the sign of the entropy bonus, lower the learning rate, raise the upper clip "
            "(epsilon_high) or the temperature, and see whether one completion is rewarded whatever the "
            "prompt.",
        ),
        "policy drift": (
            "Lower the learning rate or raise beta, the weight of the divergence in the loss, and check that "
            "the reference model has the weights that the training began with.",
        ),
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str=action_str)
        self.policy = policy_loss.empty()
        """What is known of the loss of the policy."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        is_known = policy_loss.extend(self.policy, seen)
        logged = self.grown(seen, "reward")
        self.looked = bool(self.looked) or is_known
        if is_known:
            yield from self._of_the_loss(seen.step)
        if logged is None:
            return
        found = {problem.cause: problem for problem in _problems(logged)}
        self.since = {
            cause: self.since.get(cause, logged.since(problem.quantity)) for cause, problem in found.items()
        }
        for cause, problem in found.items():
            yield self.finding(
                problem.message,
                since=self.since[cause],
                tensor=logged.name(problem.quantity),
                statistic=problem.quantity,
                value=problem.value,
                limit=problem.limit,
                cause=cause,
                why=(problem.why,),
                advice=(self.advice[cause][problem.first], *_others(self.advice[cause], problem.first)),
            )

    def invoke_at_end(self, step: int) -> bool:
        """Report advantages that have never differed: as long as the run goes on, they may later."""
        self.findings = [*self._of_the_loss(step, at_end=True)]
        return bool(self.findings)

    def _of_the_loss(self, step: int, *, at_end: bool = False) -> Iterator[Finding]:
        for problem in policy_loss.found(self.policy, step, at_end=at_end):
            yield self.finding(
                problem.message,
                since=problem.since,
                tensor="loss",
                statistic=problem.statistic,
                value=problem.value,
                limit=problem.limit,
                cause=problem.cause,
                title=problem.title,
                why=(problem.why,),
                advice=(problem.advice,),
            )


def _others(advice: Sequence[str], place: int) -> Sequence[str]:
    return [*advice[:place], *advice[place + 1 :]]


def _problems(logged: Logged) -> Iterator[_Problem]:
    for find in (_no_advantage, _stale, _collapsed, _drifted):
        problem = find(logged)
        if problem is not None:
            yield problem


def _no_advantage(logged: Logged) -> _Problem | None:
    quantity = _without_spread(logged)
    reward = logged.level("reward")
    if quantity is None or reward is None:
        return None
    best, start = logged["reward"]["best"], logged["reward"]["first"][0]
    if best is not None and best > start and reward >= best - 0.05 * abs(best):
        return None  # the task is solved
    if _has_gained(logged):
        return None  # for those prompts that can be
    return _Problem(
        "no advantage",
        quantity,
        1.0,
        ALL_GROUPS,
        f"The rewards of each group are equal at {RECENT} logged steps in a row, at {reward:.4g}: every "
        "advantage is zero, and so is the gradient",
        f"{logged.name(quantity)} is {logged.recent(quantity)[-1]:.3g}, and the reward was {start:.4g} at "
        "first",
    )


def _without_spread(logged: Logged) -> str | None:
    """The quantity that shows that no group had rewards that differ; None if some had."""
    shares = logged.recent("groups without spread")
    if shares:
        return "groups without spread" if min(shares) >= ALL_GROUPS else None
    spreads = logged.recent("spread of rewards")
    if spreads:
        return "spread of rewards" if max(spreads) <= _TINY else None
    highest, lowest = logged.recent("largest advantage"), logged.recent("smallest advantage")
    if highest and lowest and max(map(abs, [*highest, *lowest])) <= _TINY:
        return "largest advantage"
    return None


_TINY = 1e-6


def _has_gained(logged: Logged) -> bool:
    """Whether the reward has risen, and is not lost again."""
    gain = logged.gain()
    return gain is not None and gain > NOTHING_GAINED and not logged.has_lost()


def _stale(logged: Logged) -> _Problem | None:
    gaps, start = logged.recent("gap"), logged.start("gap", 3)
    if gaps and start is not None:
        grown = GAP_GROWTH * abs(start)
        limit = min(LARGE_GAP, max(LEAST_GAP, grown))
        if min(gaps) > limit:
            return _Problem(
                "stale rollouts",
                "gap",
                gaps[-1],
                limit,
                f"Log probabilities of trainer and sampler differ by {gaps[-1]:.3g} per token, and by "
                f"{start:.3g} at first: "
                + (
                    "they are computed in different ways, or from other weights"
                    if start > LARGE_GAP
                    else "completions come from other weights than those that are trained"
                ),
                f"The gap is above {limit:.2g} at {RECENT} logged steps in a row; the same weights differ by "
                "0.01",
                first=1 if start > LARGE_GAP else 0,
            )
    ratios = logged.recent("ratio")
    low, high = RATIOS
    if ratios and (max(ratios) < low or min(ratios) > high):
        return _Problem(
            "stale rollouts",
            "ratio",
            ratios[-1],
            low if ratios[-1] < low else high,
            f"The mean importance ratio is {ratios[-1]:.3g}, and 1 where both log probabilities belong to "
            "the same completions: they are computed in different ways, or from other weights",
            f"{min(ratios):.3g} to {max(ratios):.3g} at {RECENT} logged steps in a row; {low} to {high} is "
            "usual",
            first=1,
        )
    return None


def _collapsed(logged: Logged) -> _Problem | None:
    now, start = logged.level("entropy"), logged.start("entropy", 3)
    if now is None or start is None or logged.level("reward") is None or start < LEAST_ENTROPY:
        return None
    if max(logged.recent("entropy")) > COLLAPSED * start or _has_gained(logged):
        return None
    return _Problem(
        "policy collapse",
        "entropy",
        now,
        COLLAPSED * start,
        f"The entropy of the policy is {now:.3g}, and was {start:.3g} at the start, while the reward has not "
        f"risen ({logged.start('reward'):.4g} to {logged.level('reward'):.4g}): it always writes the same",
        f"{now / start:.0%} of the entropy is left after {logged.count('entropy')} logged steps",
    )


def _drifted(logged: Logged) -> _Problem | None:
    values = logged.recent("divergence")
    if not values or logged.level("reward") is None or _has_gained(logged):
        return None
    start = abs(logged.start("divergence", 3) or 0.0)
    limit = max(LARGE_DIVERGENCE, DIVERGENCE_GROWTH * start)
    if min(values) <= limit and not all(map(math.isinf, values)):
        return None
    return _Problem(
        "policy drift",
        "divergence",
        values[-1],
        limit,
        f"The divergence from the reference is {values[-1]:.3g}, and was {start:.3g} at the start, while the "
        "reward has not risen: the policy writes what its reference never would",
        f"The reward was {logged.start('reward'):.4g} at first, and is {logged.level('reward'):.4g} now",
    )
