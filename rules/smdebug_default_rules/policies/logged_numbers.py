"""What trainers of policies log, under the names that TRL, verl, SkyRL, miles, open-r1 and others use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from statistics import mean, median
from typing import Any

from smdebug.mode_keys import ModeKeys
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import rounded
from smdebug_default_rules.base import DefaultRule

FIRST = RECENT = 5
"""How many values are kept of the start of a series, and how many newest ones are judged together."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "reward": (
        "reward",
        "mean_reward",
        "reward_mean",
        "reward/mean",
        "rewards/mean",
        "avg_reward",
        "critic/score/mean",
        "critic/rewards/mean",
        "reward/avg_raw_reward",
        "objective/scores",
        "objective/rlhf_reward",
        "rollout/ep_rew_mean",
        "ep_rew_mean",
        "episode_reward_mean",
        "episode_reward",
    ),
    "groups without spread": (
        "frac_reward_zero_std",
        "frac_zero_std",
        "zero_std_fraction",
        "reward/frac_zero_std",
    ),
    "spread of rewards": ("reward_std", "reward/std", "rewards/std", "std_reward"),
    "largest advantage": ("critic/advantages/max", "advantages/max", "advantage_max"),
    "smallest advantage": ("critic/advantages/min", "advantages/min", "advantage_min"),
    "entropy": (
        "entropy",
        "actor/entropy",
        "policy/entropy",
        "policy/policy_entropy",
        "policy/entropy_avg",
        "policy_entropy",
    ),
    "divergence": (
        "kl",
        "actor/kl_loss",
        "policy/policy_kl",
        "policy_kl",
        "mean_kl",
        "kl_mean",
        "objective/kl",
    ),
    "gap": (
        "sampling/sampling_logp_difference/mean",
        "sampling_logp_difference",
        "rollout_probs_diff_mean",
        "rollout_corr/log_ppl_abs_diff",
        "mismatch/mismatch_log_ppl_abs_diff",
        "policy/rollout_train_logprobs_abs_diff_mean",
        "rollout_logprob_abs_diff",
        "logprob_abs_diff",
        "logprob_diff",
    ),
    "ratio": (
        "sampling/importance_sampling_ratio/mean",
        "importance_sampling_ratio",
        "importance_ratio",
        "rollout_corr/rollout_is_mean",
        "mismatch/rollout_is_mean",
        "rollout_is_mean",
        "ratio_mean",
    ),
    "preferred": ("rewards/accuracies", "rewards/accuracy"),
    "margin": ("rewards/margins", "rewards/margin"),
}
"""The names of each quantity, the usual ones first; `train/` and the like before them do not count."""

_QUANTITIES = {name: quantity for quantity, names in NAMES.items() for name in names}
_BEFORE = re.compile(r"^(logged/)?(train(er|ing)?[/_.])?")


def quantity_of(series: str) -> str | None:
    """Return what a series of that name measures; None if it is none of these."""
    name = series.lower()
    return _QUANTITIES.get(name) or _QUANTITIES.get(_BEFORE.sub("", name, count=1))


class Logged(dict[str, dict[str, Any]]):
    """What is kept of each quantity: first and newest values, their steps, and the name of the series."""

    def add(self, seen: ObservedStep) -> bool:
        """Take the values since the saved step before; return whether there were any."""
        is_new = False
        for name in seen.series_names:
            quantity = quantity_of(name)
            if quantity is None:
                continue
            known = self.setdefault(quantity, _empty(name))
            if known["name"] != name and _rank(quantity, name) < _rank(quantity, known["name"]):
                known = self[quantity] = _empty(name)
            if known["name"] == name:
                is_new = _extend(known, seen.series(name)) or is_new
        return is_new

    def name(self, quantity: str) -> str:
        """Return the name of its series."""
        return str(self[quantity]["name"])

    def recent(self, quantity: str) -> list[float]:
        """Return the newest values; none before there are `RECENT` of them."""
        values: list[float] = self.get(quantity, _NOTHING)["last"]
        return values if len(values) == RECENT else []

    def level(self, quantity: str) -> float | None:
        """Return the median of the newest values."""
        values = self.recent(quantity)
        return median(values) if values else None

    def start(self, quantity: str, at_most: int = FIRST) -> float | None:
        """Return the median of the first values."""
        values: Sequence[float] = self.get(quantity, _NOTHING)["first"][:at_most]
        return median(values) if values else None

    def count(self, quantity: str) -> int:
        """Return how many values there were."""
        return int(self.get(quantity, _NOTHING)["count"])

    def since(self, quantity: str) -> int:
        """Return the step of the first of the newest values."""
        return int(self[quantity]["steps"][0])

    def gain(self) -> float | None:
        """Return by how many spreads of its first values the reward has risen; None if there is no reward."""
        start, now = self.start("reward"), self.level("reward")
        if start is None or now is None:
            return None
        noise = _deviation(self["reward"]["first"])
        return (now - start) / noise if noise > 0 else 0.0 if now <= start else float("inf")

    def has_lost(self) -> bool:
        """Whether the reward was higher once, and more than half of what it had gained is gone."""
        start, now = self.start("reward"), self.level("reward")
        if start is None or now is None:
            return False
        gained = self["reward"]["best"] - start
        return bool(gained > 2 * _deviation(self["reward"]["first"]) and now < start + gained / 2)


_NOTHING: Mapping[str, Any] = {"first": [], "last": [], "count": 0}


class RuleOnLogged(DefaultRule):
    """A rule that reads what a training logs, and remembers since when it has seen which problem."""

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.logged: dict[str, Any] = {}
        self.since: dict[str, int] = {}

    def grown(self, seen: ObservedStep, quantity: str) -> Logged | None:
        """Add what the step has; None if nothing is new, or if that quantity was never logged."""
        logged = Logged(self.logged)
        is_new = logged.add(seen)
        self.logged = dict(logged)
        self.looked = is_new and quantity in logged
        return logged if self.looked else None


def _empty(name: str) -> dict[str, Any]:
    return {"name": name, "first": [], "last": [], "steps": [], "count": 0, "best": None, "trains": False}


def _rank(quantity: str, name: str) -> int:
    names = NAMES[quantity]
    short = _BEFORE.sub("", name.lower(), count=1)
    return names.index(name.lower()) if name.lower() in names else names.index(short)


def _extend(known: MutableMapping[str, Any], rows: Any) -> bool:
    # A loop that calls its model without gradients last logs in the mode of an evaluation.
    is_training = rows[:, 1] != ModeKeys.EVAL.value
    if is_training.any() and not known["trains"]:
        known.update(_empty(known["name"]), trains=True)
    if known["trains"]:
        rows = rows[is_training]
    values = rounded(rows[:, 3].tolist())
    for step, value in zip(rows[:, 0].astype(int).tolist(), values, strict=True):
        if value != value:  # the trainer had nothing to average
            continue
        if len(known["first"]) < FIRST:
            known["first"].append(value)
        known["last"] = [*known["last"], value][-RECENT:]
        known["steps"] = [*known["steps"], step][-RECENT:]
        known["count"] += 1
        if len(known["last"]) == RECENT:
            level = median(known["last"])
            known["best"] = level if known["best"] is None else max(known["best"], level)
    return bool(values)


def _deviation(values: Iterable[float]) -> float:
    """The standard deviation by the mean distance from the median, to which one large value adds little."""
    kept = list(values)
    middle = median(kept)
    return 1.25 * mean(abs(value - middle) for value in kept)
