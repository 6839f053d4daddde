"""Input images that were not normalised."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from smdebug.numbers.conditions import is_numeric
from smdebug.rules import Finding, Rule
from smdebug.rules.measurements import WorkerValue, read_values
from smdebug.rules.parameters import integer, is_given, number
from smdebug.rules.selection import TensorSelection

_HYBRID = ".*hybridsequential0_input_0"


class CheckInputImages(Rule):
    """Fires when the mean of a channel differs from 0 by more than `threshold_mean`, over all images so far.

    The first check is made after `threshold_samples` images; images are along the first axis, channels
    along axis `channel`. With `threshold_variance`, it also fires when a channel's variance differs from 1
    by more than that.
    """

    cause = "unscaled input"
    advice: ClassVar = {
        "": (
            "Subtract the mean and divide by the standard deviation of the training images, "
            "in the transformation that loads them.",
            "Use the same normalisation for validation.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        threshold_mean: Any = 0.2,
        threshold_samples: Any = 500,
        regex: Any = _HYBRID,
        channel: Any = 1,
        threshold_variance: Any = None,
        *,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.threshold_mean = number("threshold_mean", threshold_mean, minimum=0)
        self.threshold_samples = integer("threshold_samples", threshold_samples, minimum=1)
        self.selection = TensorSelection(None, regex or _HYBRID)
        self.channel = integer("channel", channel)
        self.threshold_variance = None
        if is_given(threshold_variance):
            self.threshold_variance = number("threshold_variance", threshold_variance, minimum=0)
        self.images: dict[str, int] = {}
        self.pixels: dict[str, int] = {}  # of one channel
        self.sums: dict[str, list[float]] = {}
        self.squares: dict[str, list[float]] = {}
        self.last_good: dict[str, int] = {}

    def invoke_at_step(self, step: int) -> bool:
        trial = self.base_trial
        added = {
            images.name
            for images in read_values(trial, self.selection.names(trial, step), step)
            if self._add(images)
        }
        self.looked = bool(added)
        found = []
        for name in sorted(added):
            if self.images[name] < self.threshold_samples:
                continue
            problems = self._judged(name, step)
            found += problems
            if not problems:
                self.last_good[name] = step
        found.sort(key=lambda item: -item[0])
        self.findings = [finding for _, finding in found]
        return bool(found)

    def _add(self, images: WorkerValue) -> bool:
        """Add the images to the sums; return False if the tensor does not hold images."""
        value, name = images.value, images.name
        if value is None or not is_numeric(value) or value.dtype.kind == "c" or not value.size:
            self.skipped[name] = "it has no images: its value was not saved, is empty or is not real numbers"
            return False
        if value.ndim < 2 or not -value.ndim <= self.channel < value.ndim:
            self.skipped[name] = f"its shape {value.shape} has no axis {self.channel} for channels"
            return False
        axis = self.channel % value.ndim
        others = tuple(at for at in range(value.ndim) if at != axis)
        wide = value.astype(np.float64)
        with np.errstate(all="ignore"):
            sums, squares = wide.sum(axis=others), np.square(wide).sum(axis=others)
        if not (np.isfinite(sums).all() and np.isfinite(squares).all()):
            self.skipped[name] = "some of its values are not finite"
            return False
        known = self.sums.get(name, [0.0] * sums.size)
        if len(known) != sums.size:
            self.skipped[name] = f"it has {sums.size} channels, but had {len(known)} before"
            return False
        self.sums[name] = [a + float(b) for a, b in zip(known, sums, strict=True)]
        before = self.squares.get(name, [0.0] * sums.size)
        self.squares[name] = [a + float(b) for a, b in zip(before, squares, strict=True)]
        self.images[name] = self.images.get(name, 0) + (value.shape[0] if axis else 1)
        self.pixels[name] = self.pixels.get(name, 0) + value.size // sums.size
        return True

    def _judged(self, name: str, step: int) -> list[tuple[float, Finding]]:
        found = []
        count, images = self.pixels[name], self.images[name]
        good = {"last_good_step": self.last_good[name]} if name in self.last_good else {}
        for at, (total, squares) in enumerate(zip(self.sums[name], self.squares[name], strict=True)):
            mean = total / count
            checks = [("mean", mean, 0.0, self.threshold_mean)]
            if self.threshold_variance is not None:
                variance = max(squares / count - mean * mean, 0.0)
                checks.append(("variance", variance, 1.0, self.threshold_variance))
            for statistic, value, expected, limit in checks:
                if abs(value - expected) > limit and math.isfinite(value):
                    finding = Finding(
                        tensor=name,
                        statistic=f"{statistic} of channel {at}",
                        value=value,
                        threshold=limit,
                        step=step,
                        message=f"{name}: {statistic} of channel {at} is {value:.4g} over {images} images, "
                        f"expected {expected:g} ± {limit:g}",
                        details={"channel": at, "images": images, **good},
                    )
                    found.append((abs(value - expected) - limit, finding))
        return found
