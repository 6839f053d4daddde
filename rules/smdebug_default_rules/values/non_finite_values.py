"""Values that are not finite, or that grow without bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules import loss_history
from smdebug_default_rules.arrays import where
from smdebug_default_rules.base import Advice, DefaultRule
from smdebug_default_rules.loss_history import Floats, is_rounding, level, new_losses
from smdebug_default_rules.scales import explain, large_targets, squared_targets
from smdebug_default_rules.tensors import Parameters, first_sizes, usual_sizes

GROWTH = 100.0
"""Outputs of new weights that are this many times their input grow without bound. Later, they may have to."""
LARGE_GRADIENT, LARGE_UPDATE = 50.0, 2.0
"""Root mean square of a gradient and of an update over that of their weights."""
DIVERGED = 100.0
STEPS_DIVERGED = 5
OF_THE_INPUT = "times the rms of the input"
GROWN_AT_START = "bad initialisation"
"""The cause of outputs that explode before anything was trained."""
ENOUGH_LOSSES, NO_WORSE = 20, 1.05
"""Weights may grow as long as the loss does not rise above this share of its first level."""
RISEN = 100.0
"""Weights of a usual size at the first saved step that are this many times as large later."""


_LOWER = "Clip the norm of the gradients, and lower the learning rate."
_OPERATION = (
    "Look for the operation that first gave it: a logarithm, a root or a division of zero, a mean of "
    "nothing, or a row that is masked as a whole. torch.autograd.detect_anomaly() names it in PyTorch."
)
_INPUT = (
    "Look at the rows of this batch that are not finite: drop them, or fill the gaps before the training."
)
_HALF = "Use a gradient scaler (torch.amp.GradScaler), or bfloat16: float16 overflows above 65,504."
GROWING = 2.0
"""Losses that were this many times their first level before the NaN were growing: it did not come at once."""


class NonFiniteValues(DefaultRule):
    """Fires on NaN and infinity, on outputs that explode from layer to layer, and on a loss that diverged."""

    cause = "exploding"
    follows_scalars = True
    needs = "neither a loss nor statistics of tensors were saved"
    advice: ClassVar[Advice] = {
        "exploding": (
            _LOWER,
            "Look at the first tensor named here: a logarithm or a division of zero, "
            "an overflow of float16, or weights that multiply from layer to layer.",
        ),
        "bad initialisation": (
            "Scale the first weights by the root of the number of inputs, and those of residual "
            "branches by the root of the number of branches as well.",
            "Normalise between the layers.",
        ),
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self._begin()

    def _begin(self) -> None:
        """Keep nothing yet."""
        self.since: dict[str, int] = {}
        self.losses = loss_history.empty()
        self.high: list[int] = []
        self.targets: list[float] = []  # the first mean square, and the largest
        self.grew_at_start = False
        self.first_weights: dict[str, float] = {}

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        is_another = self.is_another_training(seen)
        if is_another:
            self._begin()
        kinds = ("parameters", "inputs", "outputs")
        self.looked = bool(len(new_losses(seen)[1])) or any(map(seen.statistics, kinds))
        found = {
            **self._non_finite(seen),
            **_thrown(seen),
            **self._grown(seen),
            **self._risen(seen),
            **self._diverged(*new_losses(seen, is_another=is_another), squared_targets(seen)),
        }
        # Scalars alone say nothing of what was found in tensors.
        known = {} if seen.facts else {name: began for name, began in self.since.items() if name != "loss"}
        began = {name: self.since.get(name, first) for name, (first, *_) in found.items()}
        self.since = {**known, **began}
        for name, (_, statistic, value, limit, message) in found.items():
            yield self.finding(
                message,
                since=self.since[name],
                tensor=name,
                statistic=statistic,
                value=value,
                limit=limit,
                cause=GROWN_AT_START if statistic == OF_THE_INPUT else None,
                **self._case(seen, name, statistic, value),
            )

    def _case(self, seen: ObservedStep, name: str, statistic: str, value: Any) -> dict[str, Any]:
        """What this case is called, the numbers that convince, and what to try."""
        first, last = _ends(self.losses["first"]), _ends(self.losses["last"][::-1])
        if statistic == OF_THE_INPUT:
            return {"title": "Values grow from layer to layer"}
        if statistic == "times the first weights":
            return {"title": "Weights grow without bound", "advice": (_LOWER,)}
        if statistic == "times the weights":
            targets = large_targets(seen)
            return {
                "title": "A step throws the weights away",
                "why": (targets.why,) if targets else (),
                "advice": (*((targets.advice,) if targets else ()), _LOWER),
            }
        if statistic == "times the first loss":
            return {
                "title": "The loss diverges",
                "why": ()
                if first is None or last is None
                else (f"{last:.4g} at step {seen.step}, {first:.4g} at first",),
                "advice": (_LOWER,),
            }
        if name == "loss":
            title = "The loss is NaN" if np.isnan(value) else "The loss is infinite"
        else:
            title = f"{'Inputs' if _is_input(seen, name) else 'Values'} are NaN or infinite"
        return {
            "title": title,
            "why": _course(first, last),
            "advice": self._what_to_try(seen, first, last),
        }

    def _what_to_try(self, seen: ObservedStep, first: float | None, last: float | None) -> tuple[str, ...]:
        """A NaN that does not follow growth is no explosion: an operation, an input or float16 gave it."""
        inputs = seen.statistics("inputs")
        if inputs is not None and (inputs.column("non_finite") > 0).any():
            return (_INPUT,)
        grew = first is not None and last is not None and abs(last) > GROWING * abs(first)
        if grew:
            targets = large_targets(seen)
            return (*((targets.advice,) if targets else ()), _LOWER, _OPERATION)
        outputs = seen.statistics("outputs")
        is_half = outputs is not None and any(tensor.dtype == "float16" for tensor in outputs.tensors)
        return (*((_HALF,) if is_half else ()), _OPERATION, *(() if first is None else (_LOWER,)))

    def _non_finite(self, seen: ObservedStep) -> dict[str, Any]:
        found: dict[str, Any] = {}
        steps, values = new_losses(seen)
        broken = where(~np.isfinite(values))
        if len(broken):
            step, value = int(steps[broken[0]]), float(values[broken[0]])
            kind = "NaN" if np.isnan(value) else "infinite"
            found["loss"] = (step, "value", value, None, f"The loss is {kind} at step {step}")
        if not found and not self._is_scaled(seen):
            # Masks may hold infinity on purpose, and a scaler skips the steps of such gradients.
            table = Parameters.of(seen)
            if table is None or not _any(table.gradient("non_finite")):
                table = None
            if table is None and not _any_parameter(seen):
                return found
        elif not found and not _any_parameter(seen):
            return found
        for kind in ("inputs", "outputs", "gradients", "parameters"):
            matrix = seen.statistics(kind)
            if matrix is None:
                continue
            counts = matrix.column("non_finite")
            for place in where(counts > 0)[:3]:
                name = matrix.names[place]
                count, size = int(counts[place]), int(matrix.column("count")[place])
                found[name] = (
                    seen.step,
                    "values that are not finite",
                    count,
                    0,
                    f"{count} of {size} values of {name} are NaN or infinite",
                )
        return found

    def _is_scaled(self, seen: ObservedStep) -> bool:
        """Whether the loss is scaled, or may be: tensors that somebody chose do not show a scaler."""
        return seen.facts.get("loss_scale") is not None or "derived" in seen.facts

    def _grown(self, seen: ObservedStep) -> dict[str, Any]:
        inputs, outputs = seen.statistics("inputs"), seen.statistics("outputs")
        if inputs is None or outputs is None or "float" not in inputs.tensors[0].dtype:
            return {}
        scale = float(inputs.column("rms")[0])
        if seen.step != 0 and not self.grew_at_start:
            return {}
        grown = outputs.column("rms") > GROWTH * max(scale, 1e-3)
        if seen.step == 0:
            self.grew_at_start = bool(grown.any())
        if not grown.any():
            return {}
        place = int(where(grown)[0])
        times = float(outputs.column("rms")[place]) / max(scale, 1e-3)
        name = outputs.names[place]
        message = f"{name} is {times:.2g} times as large as the input: values explode on the way"
        return {name: (seen.step, OF_THE_INPUT, times, GROWTH, message)}

    def _risen(self, seen: ObservedStep) -> dict[str, Any]:
        """Weights that have grown without bound since the first saved step."""
        table = Parameters.of(seen)
        if table is None:
            return {}
        rms = table.column("rms")
        if not self.first_weights:
            usual = table.is_weight & table.present & (rms > usual_sizes(table))
            self.first_weights = first_sizes(table, usual)
            return {}
        found: dict[str, Any] = {}
        if not np.fmax.reduce(rms) > RISEN * min(self.first_weights.values()):
            return found  # the usual case, short
        if self._is_no_worse():
            return {}  # weights may have to grow, such as towards targets in the thousands
        first = np.array([self.first_weights.get(name, np.nan) for name in table.names])
        for place in where(rms > RISEN * first)[:3]:
            name, times = table.names[place], float(rms[place] / first[place])
            message = (
                f"The weights of {name} are {times:.3g} times as large as at the first saved step: their "
                f"root mean square was {first[place]:.3g} and is {rms[place]:.3g}"
            )
            found[name] = (seen.step, "times the first weights", times, RISEN, message)
        return found

    def _is_no_worse(self) -> bool:
        """Whether the loss has not risen."""
        first, last = level(self.losses["first"]), level(self.losses["last"])
        return self.losses["count"] > ENOUGH_LOSSES and last < NO_WORSE * first

    def _diverged(self, steps: Floats, values: Floats, targets: float | None) -> dict[str, Any]:
        first = [abs(loss) for loss in self.losses["first"]]
        knows_enough = len(first) >= 5 and not is_rounding(self.losses["first"])
        usual = level(first) if knows_enough else np.inf
        is_high = np.abs(values) > DIVERGED * usual
        if usual > 0 and is_high.any():
            for step, is_new in zip(steps.tolist(), is_high.tolist(), strict=True):
                self.high = [*self.high, int(step)][:STEPS_DIVERGED] if is_new else []
        elif len(values):
            self.high = []
        loss_history.extend(self.losses, steps, values)
        if targets is not None:
            self.targets = [*self.targets[:1], max([*self.targets, targets])]
        if len(self.high) < STEPS_DIVERGED or not len(values):
            return {}
        if explain(self.targets, float(values[-1])):
            self.high = []  # such as where another task begins
            return {}
        times = abs(float(values[-1])) / usual
        message = f"The loss has been more than {DIVERGED:g} times its first level since step {self.high[0]}"
        return {"loss": (self.high[0], "times the first loss", times, DIVERGED, message)}


def _thrown(seen: ObservedStep) -> dict[str, Any]:
    """Weights that one step throws away: gradient and update are far larger than they are."""
    table = Parameters.of(seen)
    optimizers = [optimizer.get("class") for optimizer in seen.facts.get("optimizers") or ()]
    if table is None or not seen.facts.get("optimizer_steps") or "LBFGS" in optimizers:
        return {}
    weights = table.column("rms")
    # Weights that have just left zero are smaller than their updates without any fault.
    with np.errstate(over="ignore"):  # weights of 1e308 are another finding
        thrown = (
            table.is_weight
            & (weights > usual_sizes(table))
            & (table.gradient("rms") > LARGE_GRADIENT * weights)
            & (table.update("rms") > LARGE_UPDATE * weights)
        )
    found: dict[str, Any] = {}
    for place in where(thrown)[:3]:
        name = table.names[place]
        times = float(table.gradient("rms")[place] / weights[place])
        message = (
            f"The gradient of {name} is {times:.3g} times as large as its weights, and the step changed "
            f"them by {float(table.update('rms')[place] / weights[place]):.3g} times their size"
        )
        found[f"gradient/{name}"] = (seen.step, "times the weights", times, LARGE_GRADIENT, message)
    return found


def _is_input(seen: ObservedStep, name: str) -> bool:
    inputs = seen.statistics("inputs")
    return inputs is not None and name in inputs


def _ends(losses: Sequence[float]) -> float | None:
    """The level of the first five losses that are finite; None if none is."""
    finite = [loss for loss in losses if np.isfinite(loss)][:5]
    return level(finite) if finite else None


def _course(first: float | None, last: float | None) -> tuple[str, ...]:
    """How the loss went before."""
    if first is None or last is None:
        return ("0 losses before it were finite",)
    return (f"The loss was {last:.4g} before, and {first:.4g} at first",)


def _any(column: Any) -> bool:
    return bool(np.any(column > 0))


def _any_parameter(seen: ObservedStep) -> bool:
    table = Parameters.of(seen)
    return table is not None and _any(table.column("non_finite"))
