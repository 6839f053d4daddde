"""`smdebug.start("runs/a")`: watch every training of this process from one line on.

    import smdebug

    smdebug.start("runs/a")
    ...                       # the training as it is: PyTorch, Keras or XGBoost

Nothing in the training has to be changed. What is saved is the default plan (`saving.default_plan`).
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.launching.imports import watch_imports
from smdebug.launching.messages import framework_of, is_left_to_callback, no_training_in
from smdebug.launching.scripts import DEFAULT_FOLDER
from smdebug.logger import get_logger
from smdebug.saving.hooks.logged import log, mark_checkpoint
from smdebug.saving.hooks.options import checked_interval
from smdebug.saving.place.finished import NEXT, place_for_another_run, place_for_later_training
from smdebug.saving.place.places import unused
from smdebug.saving.process.companion import checked_alerts, checked_rule_file, refuse_unevaluable
from smdebug.saving.process.sinks import checked_sinks

_current: Watched | None = None
_is_watching = False


class Watched:
    """The trainings watched since `start`. Leaving it as a context manager, or `stop`, ends their runs."""

    def __init__(self, out_dir: str, rules: Any, *, if_finished: str = NEXT, **options: Any):
        self.out_dir = out_dir
        self.runs: list[str] = []
        """The places of the runs saved so far: one per training of its own, `out_dir`, `out_dir-2` …"""
        self._if_finished = if_finished
        self._rules = rules
        self._options = {name: value for name, value in options.items() if value is not None}
        self._hooks: list[Any] = []

    def make_hook(self, hook_class: Any) -> Any:
        """Make the hook of a training that has begun."""
        number = len(self._hooks) + 1
        place = self.out_dir
        if number > 1:
            place = place_for_later_training(place, number, self._if_finished)
        options, framework = self._options, framework_of(hook_class)
        if framework != "PyTorch" and "compute_twice" in options:
            options = {name: value for name, value in options.items() if name != "compute_twice"}
            get_logger().warning("compute_twice does nothing for a training of %s", framework)
        hook = hook_class(place, rules=self._rules, **options)
        self._hooks.append(hook)
        self.runs.append(place)
        get_logger().info("Watching a training of %s in %s", framework, place)
        return hook

    def log(
        self, given: Mapping[str, Any] | None = None, /, *, step: int | None = None, **named: Any
    ) -> None:
        """Log numbers of your own, or images, texts and tables, as `smdebug.log` does."""
        log(given, step=step, **named)

    def mark_checkpoint(self, path: Any, *, step: int | None = None) -> None:
        """Note where the weights were saved, as `smdebug.mark_checkpoint` does."""
        mark_checkpoint(path, step=step)

    def stop(self) -> None:
        """End the runs: write what is still open. Trainings are no longer watched."""
        self.report_missing_training()
        self.leave()
        for hook in self._hooks:
            hook.close()

    def __enter__(self) -> Watched:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.report_missing_training()
        self.leave()
        for hook in self._hooks:
            hook.__exit__(kind, error, trace)

    def report_missing_training(self) -> None:
        """Warn if nothing was watched."""
        if not self._hooks and _current is self and not is_left_to_callback():
            get_logger().warning("smdebug.start: %s", no_training_in("this process"))

    def leave(self) -> None:
        """Watch no other trainings; the runs of those that are watched go on."""
        global _current
        if _current is self:
            _current = None
            for watcher in _watchers():
                watcher.stop()


def start(
    out_dir: str | os.PathLike[str] | None = None,
    *,
    rules: Any = None,
    include_workers: str | None = None,
    evaluate: bool | None = None,
    alerts: str | Iterable[str] | None = None,
    rule_file: str | os.PathLike[str] | None = None,
    sinks: str | Iterable[str] | None = None,
    include_collections: Iterable[str] | None = None,
    save_config: Any = None,
    config: Any = None,
    tags: str | Iterable[str] | None = None,
    note: str | None = None,
    origin: str | None = None,
    not_secret: str | Iterable[str] | None = None,
    system_metrics: bool = True,
    compute_twice: int | None = None,
    if_finished: str = "next",
) -> Watched:
    """Watch every training of this process from now on, and save to `out_dir` or a folder of its own.

    `out_dir` is a folder or `s3://bucket/prefix`. Runs that an earlier `start` watches end here. Models whose
    optimizer exists already are watched as well. With several processes, give each the same `out_dir`: the
    first saves everything and the others digests of their parameters, unless `include_workers` says
    otherwise ("one" or "all").

    If `out_dir` holds a finished run, the run is saved beside it, in `runs/a-2`. With `if_finished`
    "overwrite" it replaces that run, with "resume" it continues it, and "refuse" raises `RunEnded`. Later
    trainings of this process always take the next free name.

    With `evaluate`, a process beside the training evaluates the default rules and those in `rules` while it
    trains, prints problems as they are detected, and sends them to the addresses in `alerts`. `rule_file`
    is a Python file with rules of your own, which it evaluates, too. `sinks` are tools that it sends problems
    and numbers to, such as "mlflow" or "wandb"; with them, `evaluate` may be left out.

    `include_collections` and `save_config` choose tensors and steps to be saved whole, as for a hook, in
    place of the default plan.

    `config` is the training's hyperparameters: a dictionary, a namespace or a dataclass. They are kept with
    `tags`, a `note`, the command line, the commit and the versions in the run's `origin.json`, without
    secrets. Names in `not_secret` are no secrets; `origin="versions"` keeps the versions alone. Time per
    step, CPU, memory and GPUs are measured at saved steps unless `system_metrics` is False.

    With `compute_twice=1000`, one step in 1,000 of a PyTorch training is computed a second time, and all bits
    are compared: a defective device gives others. Weights, gradients and optimizer state are compared with
    copies from before that step: defective memory changes them.
    """
    global _current, _is_watching
    if out_dir is None and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise SMDebugValueError('Several processes save one run: give its place, smdebug.start("runs/a")')
    if _current is not None:
        _current.stop()
    place = _own_folder() if out_dir is None else os.fspath(out_dir)
    place = place_for_another_run(place, if_finished)  # absolute: the training may change its folder
    chosen_sinks = checked_sinks(sinks or ())
    refuse_unevaluable(evaluate, checked_alerts(alerts or ()), place, rule_file=rule_file, sinks=chosen_sinks)
    _current = Watched(
        place.rstrip("/"),
        rules,
        if_finished=if_finished,
        include_workers=include_workers,
        evaluate=evaluate,
        alerts=alerts,
        rule_file=checked_rule_file(rule_file),
        sinks=chosen_sinks or None,
        include_collections=None if include_collections is None else list(include_collections),
        save_config=save_config,
        config=config,
        tags=tags,
        note=note,
        origin=origin,
        not_secret=not_secret,
        system_metrics=system_metrics,
        compute_twice=checked_interval(compute_twice),
    )
    if _is_watching:
        for watcher in _watchers():
            watcher.restart()
    else:
        _is_watching = True
        watch_imports(_make_hook)
        atexit.register(_report_missing_training)
    return _current


def _make_hook(hook_class: Any) -> Any:
    """Make a hook for the trainings that are watched now; None if none are."""
    return None if _current is None else _current.make_hook(hook_class)


def _report_missing_training() -> None:
    if _current is not None:
        _current.report_missing_training()


def _watchers() -> list[Any]:
    """Return the watchers of imported frameworks that remember a training."""
    names = [f"smdebug.{room}.unchanged" for room in ("pytorch", "tensorflow")]
    return [sys.modules[name] for name in names if name in sys.modules]


def _own_folder() -> Path:
    return unused(Path(DEFAULT_FOLDER) / time.strftime("%Y%m%d-%H%M%S"))
