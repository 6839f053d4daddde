"""Hooks that are driven by callbacks: those of frameworks, and `smdebug.Hook` for any loop in Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from smdebug.config.collection_manager import CollectionManager
from smdebug.config.keys import CollectionKeys
from smdebug.config.parsing import whole_number
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig
from smdebug.exceptions import SMDebugValueError, TrainingStopped
from smdebug.files.framing import Checksum
from smdebug.files.names import file_name_of, worker_in
from smdebug.mode_keys import ModeKeys
from smdebug.saving.base_hook import BaseHook, ScalarCache
from smdebug.saving.control import LOOK_EVERY, Agree
from smdebug.saving.places import Place
from smdebug.saving.step_clock import BEFORE_THE_FIRST, StepClock

__all__ = [
    "BaseHook",
    "CallbackHook",
    "Checksum",
    "FrameworkHook",
    "Hook",
    "NeutralCollections",
    "ScalarCache",
]


class CallbackHook(BaseHook):
    """A hook that a framework calls while it runs: its first step is 0, and layers name their tensors."""

    def __init__(
        self,
        collection_manager: CollectionManager,
        default_include_collections: Iterable[str],
        profiler_config_parser: Any = None,
        data_type_name: str | None = None,
        out_dir: Place | None = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | None = None,
        dry_run: bool = False,
        reduction_config: ReductionConfig | None = None,
        save_config: SaveConfig | Mapping[ModeKeys, Any] | None = None,
        include_regex: str | Iterable[str] | None = None,
        include_collections: str | Iterable[str] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
        **more: Any,
    ):
        self.data_type_name = data_type_name
        self._calls: dict[str, int] = {}  # how often each name was used within the step
        self._calls_of: StepClock | None = None
        self._said: set[str] = set()
        super().__init__(
            collection_manager,
            default_include_collections,
            profiler_config_parser,
            init_step=BEFORE_THE_FIRST,
            out_dir=out_dir,
            export_tensorboard=export_tensorboard,
            tensorboard_dir=tensorboard_dir,
            dry_run=dry_run,
            reduction_config=reduction_config,
            save_config=save_config,
            include_regex=include_regex,
            include_collections=include_collections,
            save_all=save_all,
            include_workers=include_workers,
            **more,
        )

    def record_tensor_value(self, tensor_name: str, tensor_value: Any) -> None:
        """Offer the result of a function that is no layer, as `<name>_output_0`, `_1` and so on."""
        if isinstance(tensor_value, list | tuple | Mapping):
            self.record_outputs(tensor_name, tensor_value)
        else:
            self._record_numbered(f"{tensor_name}_output_", [tensor_value])

    def record_inputs(self, name: str, values: Any) -> None:
        """Offer what a layer was given: every tensor in it, however nested, as `<name>_input_<i>`."""
        if self._due:
            self._record_numbered(f"{name}_input_", self._tensors_in(values))

    def record_outputs(self, name: str, values: Any) -> None:
        """Offer what a layer gave: every tensor in it, however nested, as `<name>_output_<i>`."""
        if self._due:
            self._record_numbered(f"{name}_output_", self._tensors_in(values))

    def say_once(self, what: str, kind: str = "") -> None:
        """Warn of what cannot be done, and go on. Of several of one `kind` the first is said."""
        if (kind or what) not in self._said:
            self._said.add(kind or what)
            self.logger.warning("%s", what)

    def guarded(self, capture: Callable[[], object]) -> None:
        """Capture something; whatever goes wrong there, the training goes on."""
        try:
            capture()
        except Exception as error:  # noqa: BLE001
            self._go_quiet(error)

    def _record_numbered(self, prefix: str, tensors: Iterable[Any]) -> None:
        if self._calls_of is not self._ran:  # another step: counting begins anew
            self._calls_of = self._ran
            self._calls.clear()
        for tensor in tensors:
            number = self._calls.get(prefix, 0)
            self._calls[prefix] = number + 1
            self.record(f"{prefix}{number}", tensor)

    def _tensors_in(self, values: Any) -> Iterator[Any]:
        if self._is_tensor(values):
            yield values
        elif isinstance(values, Mapping):
            for value in values.values():
                yield from self._tensors_in(value)
        elif isinstance(values, list | tuple):
            for value in values:
                yield from self._tensors_in(value)

    def _is_tensor(self, value: Any) -> bool:
        """Is it a tensor of the framework? Without a framework, whatever numpy takes for an array is."""
        if self.data_type_name is None:
            return hasattr(value, "__array__")
        return any(base.__name__ == self.data_type_name for base in type(value).__mro__)


class FrameworkHook(CallbackHook):
    """What the hook of a framework takes. Each says what its collections are, and what its tensors are."""

    _saved_by_default: Iterable[str] = ()
    _tensor_type: str | None = None

    def __init__(
        self,
        out_dir: Place | None = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | None = None,
        dry_run: bool = False,
        reduction_config: ReductionConfig | None = None,
        save_config: SaveConfig | Mapping[ModeKeys, Any] | None = None,
        include_regex: str | Iterable[str] | None = None,
        include_collections: str | Iterable[str] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
        *,
        run_id: str | None = None,
        checksum: Checksum = "constant",
        rules: Any = None,
        agree: Agree | None = None,
        on_stop: Callable[[TrainingStopped], object] | None = None,
        look_for_stop: float | None = LOOK_EVERY,
    ):
        self._make_ready()
        super().__init__(
            self._make_collections(),
            self._saved_by_default,
            None,
            self._tensor_type,
            out_dir,
            export_tensorboard=export_tensorboard,
            tensorboard_dir=tensorboard_dir,
            dry_run=dry_run,
            reduction_config=reduction_config,
            save_config=save_config,
            include_regex=include_regex,
            include_collections=include_collections,
            save_all=save_all,
            include_workers=include_workers,
            run_id=run_id,
            checksum=checksum,
            rules=rules,
            agree=agree,
            on_stop=on_stop,
            look_for_stop=look_for_stop,
        )

    def _make_ready(self) -> None:
        """What the framework's hook has to have before anything else is set up."""

    def _make_collections(self) -> CollectionManager:
        raise NotImplementedError


class Hook(CallbackHook):
    """Saves the tensors of any training loop in Python: numpy, JAX, your own.

        with smdebug.Hook("s3://bucket/run", include_collections=["gradients"]) as hook:
            for batch in batches:
                with hook.step(modes.TRAIN):
                    loss, gradients = train(batch)
                    hook.record("loss", loss)
                    hook.record_all({f"gradient/{name}": g for name, g in gradients.items()})

    The collections losses, metrics, weights, biases and gradients know their members by name; losses and
    metrics are saved unless told otherwise. Several processes may save one run: give each its `worker` (a
    rank, or a name), the `num_workers` there are, and `include_workers="all"`.

    `rules` watch the run where the application is deployed: names, or what `rules.json` says of a rule. When
    the training is asked to stop, the next step raises `TrainingStopped`, after `on_stop` was called with it;
    with several workers, `agree` is given the last step this one knows of (or None) and returns everybody's.
    `look_for_stop` is how many seconds lie at least between two looks; None for never.
    """

    def __init__(
        self,
        out_dir: Place | None = None,
        *,
        export_tensorboard: bool = False,
        tensorboard_dir: str | None = None,
        dry_run: bool = False,
        reduction_config: ReductionConfig | None = None,
        save_config: SaveConfig | Mapping[ModeKeys, Any] | None = None,
        include_regex: str | Iterable[str] | None = None,
        include_collections: str | Iterable[str] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
        worker: int | str = 0,
        num_workers: int = 1,
        run_id: str | None = None,
        checksum: Checksum = "constant",
        rules: Any = None,
        agree: Agree | None = None,
        on_stop: Callable[[TrainingStopped], object] | None = None,
        look_for_stop: float | None = LOOK_EVERY,
    ):
        self._worker_name = _worker_name(worker)
        self._num_workers = whole_number(num_workers, "num_workers")
        if self._num_workers < 1:
            raise SMDebugValueError(f"num_workers must be at least 1, not {num_workers}")
        super().__init__(
            NeutralCollections(create_default=True),
            NeutralCollections.saved_by_default,
            out_dir=out_dir,
            export_tensorboard=export_tensorboard,
            tensorboard_dir=tensorboard_dir,
            dry_run=dry_run,
            reduction_config=reduction_config,
            save_config=save_config,
            include_regex=include_regex,
            include_collections=include_collections,
            save_all=save_all,
            include_workers=include_workers,
            run_id=run_id,
            checksum=checksum,
            rules=rules,
            agree=agree,
            on_stop=on_stop,
            look_for_stop=look_for_stop,
        )
        if self._num_workers == 1 or _is_first(self._worker_name):
            self.chief_worker = self._worker_name

    def _get_worker_name(self) -> str:
        return self._worker_name

    def _get_num_workers(self) -> int:
        return self._num_workers


class NeutralCollections(CollectionManager):
    """The collections of a training without a framework."""

    default_collections: Mapping[str, tuple[str, ...]] = {
        CollectionKeys.ALL: (),
        CollectionKeys.DEFAULT: (),
        CollectionKeys.WEIGHTS: ("^(?!gradient).*weight",),
        CollectionKeys.BIASES: ("^(?!gradient).*bias",),
        CollectionKeys.GRADIENTS: ("^gradient",),
        CollectionKeys.LOSSES: ("^(?!gradient).*[Ll]oss",),
        CollectionKeys.METRICS: (
            "^(?!gradient).*([Aa]ccuracy|[Mm]etric|[Pp]recision|[Rr]ecall|[Pp]erplexity)",
            "(^|[/_.-])(acc|auc|f1|mae|mse|rmse|bleu|rouge)([/_.@-]|$)",
        ),
    }
    saved_by_default = (CollectionKeys.LOSSES, CollectionKeys.METRICS)


def _worker_name(worker: int | str) -> str:
    """`worker_<rank>` for a rank; a name as it is, if it can stand in the name of a file."""
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
    """Is it the first of its kind: `worker_0`, or a device whose numbers are all 0?"""
    numbers = re.findall(r"\d+", worker)
    return bool(numbers) and not any(map(int, numbers))
