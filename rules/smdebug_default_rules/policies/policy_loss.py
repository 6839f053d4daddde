"""What the loss of a policy says of it: advantages that are all the same, and an entropy that is punished."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, NamedTuple

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import rounded

LEAST_STEPS, LEAST_APART = 10, 50
LIVE_APART = 1000
"""As long as the run goes on, a reward that is rare may still come."""
LEAST_WRONG = 5
LEAST_FALL, LEAST_FALL_OF_SCALES = 0.05, 0.2
"""Of the largest entropy, and of the logarithm of a spread."""
UNDECIDED = 0.9
"""A policy with this share of the largest entropy has not learnt which action is better."""
_TINY = 1e-6
_BONUS = (
    "Subtract the entropy from the loss: loss = policy_loss - coefficient * entropy, with a coefficient "
    "above 0. The optimizer makes the loss small, and so whatever is added to it."
)
_ADVANTAGE = (
    "Print rewards and advantages of one batch: look for a reward that is never given, a mask or a "
    "comparison that is always false, and a baseline that is computed from the reward itself."
)


class Problem(NamedTuple):
    """What is wrong, in words."""

    cause: str
    since: int
    statistic: str
    value: float
    limit: float
    title: str
    message: str
    why: str
    advice: str


def empty() -> dict[str, Any]:
    """What is kept of a policy of which nothing was seen yet."""
    kept = {"steps": 0, "since": 0, "value": None, "varies": False, "loses": False}
    return {**kept, "wrong": [], "entropies": [], "scales": []}


def extend(kept: MutableMapping[str, Any], seen: ObservedStep) -> bool:
    """Add a step; return whether its loss is that of a policy with a known entropy."""
    loss = seen.facts.get("loss") or {}
    policy = loss.get("policy") or loss.get("actions")
    if policy is None:
        return False
    kept["since"] = kept["since"] if kept["steps"] else seen.step
    kept["steps"] += 1
    lowest, highest = policy["lowest"], policy["highest"]
    before = lowest if kept["value"] is None else kept["value"]
    is_other = max(abs(lowest - before), abs(highest - before)) > _TINY
    kept["varies"] = kept["varies"] or is_other
    kept["value"] = before
    kept["loses"] = kept["loses"] or lowest < -_TINY  # a weight of a label is never below 0
    kept["wrong"] = [*kept["wrong"], seen.step][:LEAST_WRONG] if policy["bonus"] < 0 else []
    if "log_scale" in policy:
        kept["scales"] = [*kept.get("scales", ())[:1], float(policy["log_scale"])]
        return True
    share = policy["entropy"] / math.log(max(policy["choices"], 2))
    (now,) = rounded([share])
    kept["entropies"] = [kept["entropies"][0] if kept["entropies"] else now, now]
    return True


def found(kept: Mapping[str, Any], step: int, *, at_end: bool = False) -> Iterator[Problem]:
    """Yield what is wrong, once there are enough steps."""
    if kept.get("scales"):
        yield from _of_scales(kept)
        return
    first, now = kept["entropies"] or (0.0, 0.0)
    if kept["loses"] and len(kept["wrong"]) == LEAST_WRONG and now <= first - LEAST_FALL:
        yield Problem(
            "policy collapse",
            kept["wrong"][0],
            "entropy",
            now,
            first,
            "The entropy of the policy is punished",
            "The entropy of the policy is added to the loss, which the optimizer makes small: it fell from "
            f"{first:.0%} to {now:.0%} of the largest possible, and the policy stops trying other actions",
            f"At {LEAST_WRONG} of {LEAST_WRONG} saved steps the loss grows with the entropy",
            _BONUS,
        )
    apart = step - kept["since"]
    is_due = apart >= LEAST_APART if at_end else apart >= LIVE_APART
    if kept["varies"] or kept["steps"] < LEAST_STEPS or not is_due:
        return
    value = float(kept["value"])
    if abs(value) > _TINY and kept["entropies"][1] < UNDECIDED:
        return  # labels, each of which counts as much
    yield Problem(
        "no advantage",
        kept["since"],
        "advantage",
        value,
        _TINY,
        "All actions have the same advantage",
        f"The advantage of every action is {value:.4g} at each of {kept['steps']} saved steps: the loss of "
        "the policy does not say which action is better, and the entropy alone is learnt",
        f"The largest and the smallest advantage are {value:.4g} at {kept['steps']} saved steps in a row",
        _ADVANTAGE,
    )


def _of_scales(kept: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield that a policy of continuous actions is paid for a small spread, once that has shrunk."""
    first, now = kept["scales"][0], kept["scales"][-1]
    if kept["loses"] and len(kept["wrong"]) == LEAST_WRONG and now <= first - LEAST_FALL_OF_SCALES:
        before, after = math.exp(first), math.exp(now)
        yield Problem(
            "policy collapse",
            kept["wrong"][0],
            "spread of the actions",
            after,
            before,
            "The entropy of the policy is punished",
            "The entropy of the policy is added to the loss, which the optimizer makes small: the spread of "
            f"its actions fell from {before:.3g} to {after:.3g}, and it stops trying other actions",
            f"At {LEAST_WRONG} of {LEAST_WRONG} saved steps the loss grows with the logarithm of the spread",
            _BONUS,
        )
