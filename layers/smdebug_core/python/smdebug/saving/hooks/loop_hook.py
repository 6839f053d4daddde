"""Hooks that a loop calls itself: `smdebug.Hook` for any loop in Python, and the base of the hook for JAX."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from smdebug.config.collection_manager import NAMED_LIKE_PARAMETERS, CollectionManager
from smdebug.config.keys import CollectionKeys
from smdebug.config.parsing import whole_number
from smdebug.exceptions import SMDebugValueError
from smdebug.files.names import FIRST_LEARNING_RATE, file_name_of, worker_in
from smdebug.files.observations import GRADIENTS, OUTPUTS, PARAMETERS, UPDATES
from smdebug.mode_keys import TRAINING, ModeKeys
from smdebug.numbers.loss_terms import criterion_name
from smdebug.saving.hooks.hook import FrameworkHook
from smdebug.saving.hooks.options import HookOptions, takes
from smdebug.saving.observations.loss_facts import LABELS, PREDICTIONS, LossTerms

RATES = frozenset({"learning_rate", "lr"})
"""Names under which loops record their learning rate."""


class LoopHook(FrameworkHook):
    """The hook of a loop that records everything itself: its loss, rate and parameters are not seen."""

    own_series = frozenset()

    def set_up(self, options: HookOptions) -> None:
        self._loss_terms = LossTerms()
        super().set_up(options)

    def begin_step(self, mode: ModeKeys | None = None) -> None:
        """Begin the next step, of `mode` or else the mode that is set. The previous step ends."""
        self.guarded(self.observe_end)
        super().begin_step(mode)

    def end_step(self, *, interrupted: bool = False) -> None:
        """End the step: what was recorded is handed over, marked if the step was interrupted."""
        self.guarded(self.observe_end)
        super().end_step(interrupted=interrupted)

    def end_run(self, *, ended: bool) -> None:
        """End the run, with an end marker if the training `ended` well. The second time does nothing."""
        self.guarded(self.observe_end)
        super().end_run(ended=ended)

    def observe_end(self) -> None:
        """Note the facts of a step of the training that ends, under the default plan.

        The parameters that have a gradient or an update are those that its optimizer changes.
        """
        observations = self.observations
        if observations is None or not self.due or self.mode not in TRAINING:
            return
        trained = {name.partition("/")[2] for name in observations.names_at_step(GRADIENTS, UPDATES)}
        parameters = [name for name in observations.names_at_step(PARAMETERS) if name in trained]
        if parameters:
            group = {"parameters": parameters, "others": 0}
            observations.note_lasting(optimizers=[{"class": "", "groups": [group]}])
            observations.note(training=self.mode is ModeKeys.TRAIN, optimizer_steps=True)

    def record(self, tensor_name: str, tensor_value: Any) -> None:
        """Save a tensor if a collection wants it at this step.

        Under the default plan a number is kept at every step, and `learning_rate` is the one that rules read.
        """
        super().record(tensor_name, tensor_value)
        if tensor_name in RATES and self.observations is not None:
            rate = self.adapter.number(tensor_value)
            if rate is not None:
                self.carry(FIRST_LEARNING_RATE, rate)

    def record_loss(
        self,
        loss: Any,
        predictions: Any = None,
        labels: Any = None,
        *,
        criterion: str | Callable[..., Any] | None = None,
        name: str = "loss",
    ) -> None:
        """Record a loss, with what its criterion was given: predictions (logits, say) and labels.

        Give them as the criterion gets them. `criterion` is its name or function, such as "cross entropy"
        or `optax.softmax_cross_entropy`. Under the default plan what the loss was computed from, and the
        balance of the labels, are facts of the step that rules need. A term of a loss has its own `name`.
        """
        if "loss" not in name.lower():
            self.assign(name, CollectionKeys.LOSSES)
        self.record(name, loss)
        if not self.recorder.due or predictions is None:
            return
        for tensor_name, value, kind in (
            (PREDICTIONS, predictions, OUTPUTS),
            (LABELS, labels, LABELS),
        ):
            if value is not None:
                self.observe_as(tensor_name, kind)
                self.record(tensor_name, value)
        observations, step = self.observations, self.last_step
        if observations is not None and step is not None:
            self.guarded(
                lambda: self._loss_terms.add(
                    (observations, step),
                    self.adapter,
                    (loss, predictions, labels),
                    criterion_name(criterion),
                )
            )


class NeutralCollections(CollectionManager):
    """The collections of a training without a framework."""

    default_collections: Mapping[str, tuple[str, ...]] = {
        **NAMED_LIKE_PARAMETERS,
        CollectionKeys.LOSSES: ("^(?!gradient).*[Ll]oss",),
        CollectionKeys.METRICS: (
            "^(?!gradient).*([Aa]ccuracy|[Mm]etric|[Pp]recision|[Rr]ecall|[Pp]erplexity)",
            "(^|[/_.-])(acc|auc|f1|mae|mse|rmse|bleu|rouge)([/_.@-]|$)",
        ),
    }
    saved_by_default = (CollectionKeys.LOSSES, CollectionKeys.METRICS)


@dataclass(frozen=True)
class LoopOptions(HookOptions):
    """The further options of the hook for any loop: which worker it is, and of how many."""

    worker: int | str = 0
    num_workers: int = 1


class Hook(LoopHook):
    """Saves the tensors of any training loop in Python: numpy, JAX, your own.

        with smdebug.Hook("s3://bucket/run", include_collections=["gradients"]) as hook:
            for batch in batches:
                with hook.step(modes.TRAIN):
                    loss, gradients = train(batch)
                    hook.record("loss", loss)
                    hook.record_all({f"gradient/{name}": g for name, g in gradients.items()})

    Given only a path, it follows the default plan: every number that is recorded is a series of all
    steps; losses and metrics of chosen steps are saved, and of other tensors statistics. `gradient/…`,
    `update/…`, `…_input_0` and `…_output_0` say what a tensor is; any other is a parameter.

    The collections losses, metrics, weights, biases and gradients know their members by name; losses and
    metrics are saved with any choice of tensors. Several processes may save one run: give each its `worker`
    (a rank, or a name), `num_workers`, and `include_workers="all"`.

    `rules` watch the run where the application is deployed: names, or entries as in `rules.json`. When a
    stop is requested, `on_stop` is called and the next step raises `TrainingStopped`. With several workers,
    `agree` receives the last step this worker knows of (or None) and returns the one that all agree on. A
    request is looked for at most every `look_for_stop` seconds; None means never.
    """

    observes = True
    saved_by_default = NeutralCollections.saved_by_default

    @takes(LoopOptions, positional=1)
    def __init__(self, options: LoopOptions):
        self._worker_name = _worker_name(options.worker)
        self._num_workers = whole_number(options.num_workers, "num_workers")
        if self._num_workers < 1:
            raise SMDebugValueError(f"num_workers must be at least 1, not {options.num_workers}")
        self.set_up(options)
        if self._num_workers == 1 or _is_first(self._worker_name):
            self.chief_worker = self._worker_name

    def make_collections(self) -> CollectionManager:
        return NeutralCollections(create_default=True)

    def _get_worker_name(self) -> str:
        return self._worker_name

    def _get_num_workers(self) -> int:
        return self._num_workers


def _worker_name(worker: int | str) -> str:
    """Return `worker_<rank>` for a rank, and a name as it is if a file name can contain it."""
    if not isinstance(worker, str):
        return f"worker_{whole_number(worker, 'worker')}"
    in_files = file_name_of(worker)
    if not re.fullmatch(r"[\w.-]+", in_files) or worker_in(in_files) != worker:
        raise SMDebugValueError(
            f"worker must be a rank, a name of letters, digits, '-' and '.' such as worker_0, or a device "
            f"such as /job:worker/device:GPU:0, not {worker!r}"
        )
    return worker


def _is_first(worker: str) -> bool:
    """Return whether this is `worker_0`, or a device whose numbers are all 0."""
    numbers = re.findall(r"\d+", worker)
    return bool(numbers) and not any(map(int, numbers))
