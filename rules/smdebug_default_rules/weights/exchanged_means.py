"""A mean of the weights, such as a teacher, whose share and its complement are exchanged."""

from __future__ import annotations

from collections.abc import Mapping, MutableSequence

from smdebug.trials.observations.one_step import ObservedStep

LEAST_SHARE = 0.9
"""A mean moves this much of the way to the weights at a step only where it begins."""
LEAST_STEPS, LEAST_APART = 5, 40
TITLE = "The mean of the weights is the weights of now"
ADVICE = (
    "Keep the large share of the mean: mean.mul_(0.99).add_(weight, alpha=0.01), or mean.lerp_(weight, "
    "0.01). Look for a decay and 1 - decay that are exchanged."
)


def found(steps: MutableSequence[int], seen: ObservedStep) -> tuple[str, str, int, str, str, str] | None:
    """Keep at which saved steps in a row the mean was nearly the weights; after enough, say what is wrong.

    That is a parameter, what is wrong, since how many saved steps, a title, the numbers, and what to try. A
    model that is exactly the trained one, as it was copied, is so on purpose.
    """
    mean = seen.facts.get("followed")
    if not isinstance(mean, Mapping):
        return None
    share = mean["share"]
    if mean["is_same"] or not LEAST_SHARE <= share < 1:
        steps.clear()
        return None
    steps.append(seen.step)
    del steps[LEAST_STEPS:-1]
    count = len(steps)
    if count < LEAST_STEPS or steps[-1] - steps[0] < LEAST_APART:
        return None
    message = (
        f"{mean['model']} is a mean of the trained weights, from {mean['of']} on, and moves {share:.2%} of "
        "the way to them at each step: it says what the model itself says, and steadies nothing"
    )
    why = (
        f"It keeps {1 - share:.3g} of what it was and takes {share:.3g} of the weights, at {count} saved "
        "steps in a row"
    )
    return mean["of"], message, count, TITLE, why, ADVICE
