"""One trial of a sweep: its run, its parameters, and whether its problems are a reason to prune it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from time import monotonic
from types import TracebackType
from typing import Any

from smdebug.diagnosis import Issue
from smdebug.diagnosis.causes import CAUSES
from smdebug.diagnosis.wording import headline
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError, TrainingStopped
from smdebug.launching.starting import Watched, start
from smdebug.logger import get_logger
from smdebug.plain_text import did_you_mean
from smdebug.runs.live_run import LiveRun
from smdebug.saving.hooks import singleton

FLUSH_SECONDS = 10.0
EVALUATE_SECONDS = 30.0
"""How long one look at the problems may take; it goes on where it was at the next one."""
GROUP = "group"
"""The name of the sweep in the configuration of its runs."""
RUN, PROBLEMS = "smdebug_run", "smdebug_problems"
"""The attributes of an Optuna trial, and the latter a number in what Ray Tune is told."""


def watch_trial(
    folder: str,
    trial: Any = None,
    *,
    name: str | None = None,
    group: str | None = None,
    params: Mapping[str, Any] | None = None,
    causes: Iterable[str] | None = None,
    patience: int = 1,
    **options: Any,
) -> WatchedTrial:
    """Watch the training of one trial: `with watch_trial("runs", trial) as watched:`.

    `trial` is a trial of Optuna, whose number and parameters are those of the run. Without one, give its
    `name` and `params`. The run is saved below `folder`, in a folder with the name of the `group`: that of
    the study, or else "sweep". Parameters and group are the configuration of the run.

    A problem is a reason to prune if its cause is among `causes` (by default every one is), and if it was
    open at so many looks in a row (`patience`). `options` are those of `smdebug.start`.
    """
    if trial is None and name is None:
        raise SMDebugTypeError("watch_trial takes a trial of Optuna, or the name of the trial and its params")
    return WatchedTrial(
        folder,
        trial,
        name=name if name is not None else f"trial-{trial.number}",
        group=group if group is not None else "sweep" if trial is None else str(trial.study.study_name),
        params=params,
        causes=checked_causes(causes),
        patience=checked_patience(patience),
        options=options,
    )


class WatchedTrial:
    """The training of one trial. Leaving it as a context manager ends its run."""

    def __init__(
        self,
        folder: str,
        trial: Any,
        *,
        name: str,
        group: str,
        params: Mapping[str, Any] | None,
        causes: frozenset[str] | None,
        patience: int,
        options: Mapping[str, Any],
    ):
        self.config: dict[str, Any] = {GROUP: group, **(params or {}), **(options.get("config") or {})}
        """The parameters so far: a hook of your own takes them as its `config`."""
        self._trial, self._causes, self._patience = trial, causes, patience
        self._add_parameters()
        self._known_hook = singleton.current_hook()
        given = {"evaluate": None, **options, "config": dict(self.config)}
        place = f"{folder.rstrip('/')}/{safe_name(group)}/{safe_name(name)}"
        self._watched: Watched = start(place, **given)
        self.out_dir = self._watched.out_dir
        """Where the run is saved."""
        self._live: LiveRun | None = None
        self._open: dict[str, int] = {}  # at how many looks in a row each cause was open

    def problems(self) -> tuple[Issue, ...]:
        """Evaluate the steps that were saved since the last look; return the problems that are open.

        What is still being written is waited for, ten seconds at most. Nothing here raises because of a rule.
        """
        self._add_parameters()
        hook = self._hook()
        if hook is None:
            return ()
        hook.flush(FLUSH_SECONDS)
        if self._live is None or self._live.path != hook.out_dir:
            self._live = LiveRun(hook.out_dir)
        deadline = monotonic() + EVALUATE_SECONDS
        self._live.advance()
        while self._live.is_behind and monotonic() < deadline:
            self._live.advance()
        if self._live.error:
            get_logger().warning("%s cannot be evaluated now: %s", hook.out_dir, self._live.error)
        following = self._live.following
        return () if following is None else following.open_issues

    def reasons_to_prune(self) -> tuple[Issue, ...]:
        """Return the open problems that are a reason: of the chosen causes, and open for long enough."""
        chosen = [each for each in self.problems() if self._causes is None or each.cause in self._causes]
        self._open = {each.cause: self._open.get(each.cause, 0) + 1 for each in chosen}
        return tuple(each for each in chosen if self._open[each.cause] >= self._patience)

    def should_prune(self) -> bool:
        """Return whether there is a reason to prune the trial now."""
        return bool(self.reasons_to_prune())

    def prune(self) -> None:
        """Raise `optuna.TrialPruned` if there is a reason to; it says which.

        It is a `smdebug.exceptions.TrainingStopped` as well, which is all of it without Optuna.
        """
        reasons = self.reasons_to_prune()
        if reasons:
            text = "; ".join(headline(each) for each in reasons)
            raise _pruned(self._trial)(text, max(each.last for each in reasons))

    def metrics(self) -> dict[str, int]:
        """Return `{"smdebug_problems": 0}`: the number of reasons to prune, to be reported to Ray Tune.

        `RunConfig(stop={"smdebug_problems": 1})` ends a trial that has one.
        """
        return {PROBLEMS: len(self.reasons_to_prune())}

    def __enter__(self) -> WatchedTrial:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._add_parameters()
        self._note_on_trial(error)
        if isinstance(error, TrainingStopped):  # the run has ended as it was meant to
            kind = error = trace = None
        hook = self._hook()
        if hook is None or hook.out_dir in self._watched.runs:
            self._watched.__exit__(kind, error, trace)
            return
        self._watched.leave()  # the training has a hook of its own
        hook.__exit__(kind, error, trace)

    def _hook(self) -> Any:
        """Return the hook of this trial, however it was made; None before it is."""
        hook = singleton.current_hook()
        return None if hook is self._known_hook else hook

    def _add_parameters(self) -> None:
        """Add the parameters that Optuna has suggested since."""
        if self._trial is None:
            return
        self.config.update(self._trial.params)
        hook = self._hook() if hasattr(self, "_known_hook") else None
        if hook is not None:
            hook.add_config(self.config)

    def _note_on_trial(self, error: BaseException | None) -> None:
        """Note on Optuna's trial where its run is, and the problems that were found."""
        if self._trial is None:
            return
        hook = self._hook()
        self._trial.set_user_attr(RUN, self.out_dir if hook is None else hook.out_dir)
        issues: Sequence[Issue] = ()
        if isinstance(error, TrainingStopped) or error is None:
            issues = self.problems()
        self._trial.set_user_attr(PROBLEMS, [headline(each) for each in issues])


def checked_causes(causes: Iterable[str] | None) -> frozenset[str] | None:
    """Return the causes; raise `SMDebugValueError` for one that no built-in rule finds."""
    if causes is None:
        return None
    listed = [causes] if isinstance(causes, str) else list(causes)
    for cause in listed:
        if cause not in CAUSES:
            known = ", ".join(sorted(CAUSES))
            raise SMDebugValueError(f"There is no cause {cause!r}.{did_you_mean(str(cause), CAUSES)} {known}")
    return frozenset(listed)


def checked_patience(patience: Any) -> int:
    """Return the number of looks; raise `SMDebugValueError` if it is none."""
    if isinstance(patience, bool) or not isinstance(patience, int) or patience < 1:
        raise SMDebugValueError(f"patience is a number of looks, from 1 on, not {patience!r}")
    return patience


def safe_name(text: str) -> str:
    """Return a name as a folder may have it."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-.")[:100] or "trial"


def _pruned(trial: Any) -> type[TrainingStopped]:
    """Return the error to raise: one that Optuna takes for pruning, if the trial is Optuna's."""
    if trial is None:
        return TrainingStopped
    pruned = import_module("optuna").TrialPruned
    return type("TrialPruned", (TrainingStopped, pruned), {"__doc__": "The trial was pruned by a problem."})
