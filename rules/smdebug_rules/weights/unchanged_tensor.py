"""Tensors that do not change over several saved steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import all_close
from smdebug.rules import Finding
from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import each_worker, tensor_label, value_of
from smdebug.rules.parameters import boolean, integer, number
from smdebug.rules.selection import TensorSelection


class UnchangedTensor(TensorRule):
    """Fires when a selected tensor is `numpy.allclose` to itself at its last `num_steps` saved steps.

    The steps need not be consecutive, and the rule need not have been invoked at them. A tensor that is
    saved in training is compared at training steps alone, as validation changes no weights.
    """

    cause = "lost update"
    advice: ClassVar = {
        "": (
            "Check that the optimizer has this parameter, that it is not frozen "
            "(`requires_grad`), and that `optimizer.step()` is called.",
            "Check that the learning rate of its group is not zero.",
            "With float16 or bfloat16, keep a float32 copy of the weights: small updates are rounded away.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        collection_names: Any = None,
        tensor_regex: Any = None,
        num_steps: Any = 3,
        rtol: Any = 1e-5,
        atol: Any = 1e-8,
        equal_nan: Any = False,
        *,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.selection = TensorSelection(collection_names, tensor_regex)
        if not self.selection:
            raise SMDebugValueError("UnchangedTensor needs collection_names or tensor_regex")
        self.num_steps = integer("num_steps", num_steps, minimum=2)
        self.rtol = number("rtol", rtol, minimum=0)
        self.atol = number("atol", atol, minimum=0)
        self.equal_nan = boolean("equal_nan", equal_nan)

    def judged(self, step: int) -> Iterator[Judged]:
        trial = self.base_trial
        step_mode = trial.mode(step)
        last: dict[str, list[int]] = {}
        for tensor, worker in each_worker(trial, self.selection.names(trial, step), step):
            is_trained = _is_saved_in_training(tensor, step)
            if is_trained and step_mode in (ModeKeys.EVAL, ModeKeys.PREDICT):
                reason = f"it does not change in mode {step_mode.name}"
                yield Judged(tensor.name, worker, skipped=reason)
                continue
            if tensor.name not in last:
                last[tensor.name] = self._last_steps(tensor, step, is_trained)
            steps = last[tensor.name]
            if len(steps) < self.num_steps or steps[-1] != step:
                reason = f"it was saved at fewer than {self.num_steps} steps"
                yield Judged(tensor.name, worker, skipped=reason)
                continue
            unchanged = self._is_unchanged(tensor, worker, steps)
            if unchanged is None:
                reason = "it has no values to compare at one of its last steps"
                yield Judged(tensor.name, worker, skipped=reason)
                continue
            finding = None
            if unchanged:
                finding = Finding(
                    statistic="saved steps without a change",
                    value=self.num_steps,
                    threshold=self.num_steps,
                    details={"steps": steps},
                    message=f"{tensor_label(tensor.name, worker, trial)}: unchanged at steps "
                    f"{', '.join(map(str, steps))}",
                )
            yield Judged(tensor.name, worker, finding)

    def _last_steps(self, tensor: Any, step: int, is_trained: bool) -> list[int]:
        """Return the last global steps that count, the present one included."""
        if not is_trained:
            return list(tensor.prev_steps(step, self.num_steps))
        trial = self.base_trial
        _, mode_step = trial.mode_modestep(step)
        of_mode = tensor.prev_steps(mode_step, self.num_steps, ModeKeys.TRAIN)
        found = (trial.global_step(ModeKeys.TRAIN, saved) for saved in of_mode)
        return [saved for saved in found if saved is not None]

    def _is_unchanged(self, tensor: Any, worker: str, steps: list[int]) -> bool | None:
        """Return whether the values are the same; None if the worker lacks one of them."""
        now = value_of(tensor, steps[-1], ModeKeys.GLOBAL, worker)
        if now is None or now.size == 0:
            return None
        for step in reversed(steps[:-1]):
            before = value_of(tensor, step, ModeKeys.GLOBAL, worker)
            if before is None:
                return None
            if not all_close(now, before, self.rtol, self.atol, self.equal_nan):
                return False
        return True


def _is_saved_in_training(tensor: Any, step: int) -> bool:
    """Return whether the tensor has a step of mode TRAIN up to this one."""
    first = tensor.first_seen(ModeKeys.TRAIN)
    return first is not None and first <= step
