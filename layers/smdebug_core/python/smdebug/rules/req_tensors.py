"""The tensors that a rule requires, fetched together before it is evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from smdebug.exceptions import SMDebugValueError, TensorUnavailable, TensorUnavailableForStep

if TYPE_CHECKING:
    from smdebug.trials.tensor import Tensor
    from smdebug.trials.trial import Trial


class RequiredTensorsForTrial:
    """The tensors required of one trial."""

    def __init__(self, trial: Trial):
        self.trial = trial
        self._tensors: dict[str, Tensor] = {}
        self._steps: dict[str, list[int]] = {}

    def add(self, name: str, steps: Iterable[int], should_match_regex: bool = False) -> None:
        names = self.trial.tensor_names(regex=name) if should_match_regex else [name]
        wanted = list(steps)
        for required in names:
            if required not in self._tensors:
                if not self.trial.has_tensor(required):
                    raise TensorUnavailable(required)
                self._tensors[required] = self.trial.tensor(required)
                self._steps[required] = []
            known = self._steps[required]
            known.extend(step for step in dict.fromkeys(wanted) if step not in known)

    def get(self) -> list[Tensor]:
        return list(self._tensors.values())

    def get_names(self) -> list[str]:
        return list(self._tensors)

    def get_tensor_steps(self, name: str) -> list[int]:
        if name not in self._steps:
            raise SMDebugValueError(
                f"Tensor {name} is not required. Required: {', '.join(self._tensors) or 'none'}"
            )
        return list(self._steps[name])

    def get_steps(self) -> list[int]:
        return sorted({step for steps in self._steps.values() for step in steps})

    def clear(self) -> None:
        self._tensors.clear()
        self._steps.clear()

    def fetch(self) -> None:
        if not self._tensors:
            return  # as for most rules at every step
        steps = self.get_steps()
        if not steps:
            return
        self.trial.wait_for_steps(steps)
        wanted = [(self._tensors[name], step) for name in self._tensors for step in self._steps[name]]
        # The trial caches the bytes, so the rule's own read makes no request.
        self.trial.in_parallel(_read, wanted)


def _read(wanted: tuple[Tensor, int]) -> None:
    tensor, step = wanted
    try:
        tensor.value(step)
    except TensorUnavailableForStep as missing:
        if not missing.has_reductions:
            raise


class RequiredTensors:
    """Tensors required of the base trial and of others, by name and global step.

    `add` them in `set_required_tensors(step)`: they are waited for and fetched together before
    `invoke_at_step` runs. `trial=None` means the base trial.
    """

    def __init__(self, base_trial: Trial, other_trials: Sequence[Trial] | None = None):
        self.base_trial = base_trial
        self._required = [RequiredTensorsForTrial(base_trial)]
        for trial in other_trials or ():
            if self._find(trial) is None:
                self._required.append(RequiredTensorsForTrial(trial))

    def add(
        self,
        name: str,
        steps: Iterable[int],
        trial: Trial | None = None,
        should_match_regex: bool = False,
    ) -> None:
        """Require `name` at these steps; as a pattern, every tensor of the trial whose name matches.

        `TensorUnavailable` if the trial has no tensor of that name; a pattern may match nothing.
        """
        self._of(trial).add(name, steps, should_match_regex)

    def get(self, trial: Trial | None = None) -> list[Tensor]:
        """Return the required tensors of a trial."""
        return self._of(trial).get()

    def get_names(self, trial: Trial | None = None) -> list[str]:
        """Return the names of the required tensors of a trial."""
        return self._of(trial).get_names()

    def get_tensor_steps(self, name: str | None = None, trial: Trial | None = None) -> list[int]:
        """Return the steps at which a tensor is required; without a name, those of any tensor."""
        required = self._of(trial)
        return required.get_steps() if name is None else required.get_tensor_steps(name)

    def clear(self) -> None:
        """Remove all requirements."""
        for required in self._required:
            required.clear()

    def fetch(self) -> None:
        """Wait for all the required steps, then read every value.

        `StepUnavailable`, `NoMoreData` or `TensorUnavailableForStep` if one will never arrive. Reductions
        alone are enough: the tensor counts as saved.
        """
        for required in self._required:
            required.fetch()

    def _of(self, trial: Trial | None) -> RequiredTensorsForTrial:
        required = self._required[0] if trial is None else self._find(trial)
        if required is None:
            raise SMDebugValueError(
                f"{trial!r} is neither the base trial of this rule nor one of its other trials"
            )
        return required

    def _find(self, trial: Trial) -> RequiredTensorsForTrial | None:
        for required in self._required:
            if required.trial is trial or required.trial == trial:
                return required
        return None
