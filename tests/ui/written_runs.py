"""Runs of the default plan's form, written fast: matrices of statistics, without a training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import smdebug
from smdebug import modes
from smdebug.files.names import EPOCHS
from smdebug.files.observations import SERIES, STATISTICS, ObservationLayout, ObservedTensor, json_array
from smdebug.numbers.rows import COLUMN, COLUMNS, QUANTILES


class WrittenRun:
    """A run with a loss of every step, and statistics of `tensors` gradients at the saved ones."""

    def __init__(
        self,
        place: Any,
        *,
        names: Sequence[str] | None = None,
        tensors: int = 8,
        loss: Callable[[int], float] = lambda step: 2.3 * 0.999**step,
        rms: Callable[[int], Any] | None = None,
        saved: Sequence[int] | None = None,
        seed: int = 0,
        system: Callable[[int], dict[str, float]] | None = None,
        broken: Callable[[int], Any] | None = None,
        mode: Callable[[int], modes] = lambda step: modes.TRAIN,
        epoch_of: Callable[[int], int] | None = None,
        **options: Any,
    ):
        self.place = str(place)
        self.random = np.random.default_rng(seed)
        self.names = list(names or (f"blocks.{n // 2}.{('weight', 'bias')[n % 2]}" for n in range(tensors)))
        self.loss = loss
        self.rms = rms
        self.written_through = self.first_saved = -1
        self.saved = None if saved is None else frozenset(saved)
        config = (
            smdebug.SaveConfig(save_interval=1)
            if saved is None
            else smdebug.SaveConfig(save_steps=sorted(saved), save_interval=1 << 40)
        )
        self.system = system
        self.broken = broken
        self.mode = mode
        self.epoch_of = epoch_of
        self.hook = smdebug.Hook(self.place, include_regex=["^smdebug/"], save_config=config, **options)
        self.next_step = 0
        self.mode_steps: dict[int, int] = {}

    def write(self, steps: int, *, end: bool = False) -> WrittenRun:
        """Train for that many steps; a saved step has the losses since the previous one."""
        for _ in range(steps):
            step = self.next_step
            self.next_step += 1
            with self.hook.step(self.mode(step)):
                if self.saved is None or step in self.saved:
                    self._write(step)
        if end:
            self.hook.close()
        else:
            self.hook.flush()
        return self

    def _write(self, step: int) -> None:
        since = np.arange(self.written_through + 1, step + 1, dtype=np.float64)
        modes_of = [self.mode(int(each)).value for each in since]
        mode_steps = [self._mode_step(mode) for mode in modes_of]
        losses = [self.loss(int(each)) for each in since]
        if self.written_through < 0:
            shown = tuple(ObservedTensor(name, (16, 16), "float32") for name in self.names)
            layout = ObservationLayout({"gradients": shown}, {"modules": [["Net", "Net", False]]})
            self.first_saved = step
            self.hook.record("smdebug/layout", layout.to_array())
        rows = np.stack([since, modes_of, mode_steps, losses], axis=1)
        self.hook.record(f"{SERIES}loss", rows)
        if self.epoch_of is not None:
            epochs = [float(self.epoch_of(int(each))) for each in since]
            self.hook.record(f"{SERIES}{EPOCHS}", np.stack([since, modes_of, mode_steps, epochs], axis=1))
        self.hook.record(f"{STATISTICS}gradients", self._statistics(step))
        facts: dict[str, Any] = {
            "layout": self.first_saved,
            "training": self.mode(step) is modes.TRAIN,
            "gradients": True,
        }
        if self.system is not None:
            facts["system"] = self.system(step)
        self.hook.record("smdebug/facts", json_array(facts))
        self.written_through = step

    def _mode_step(self, mode: int) -> int:
        self.mode_steps[mode] = self.mode_steps.get(mode, -1) + 1
        return self.mode_steps[mode]

    def _statistics(self, step: int) -> Any:
        rms = self.random.lognormal(-5, 0.2, len(self.names))
        if self.rms is not None:
            rms = self.rms(step)
        matrix = np.zeros((len(self.names), len(COLUMNS)), np.float32)
        matrix[:, COLUMN["count"]] = 256
        for name, factor in (("rms", 1), ("std", 1), ("abs_mean", 0.8), ("max", 3), ("min", -3)):
            matrix[:, COLUMN[name]] = factor * rms
        for quantile in QUANTILES:
            matrix[:, COLUMN[f"p{round(100 * quantile):02d}"]] = (quantile - 0.5) * 4 * rms
        if self.broken is not None:
            matrix[:, COLUMN["non_finite"]] = self.broken(step)
        return matrix
