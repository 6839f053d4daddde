"""A rule at one step of a run, as it was deployed: with the run as of that step, and its state before it.

Each earlier step is evaluated in order on a view that ends there. Then the rule is constructed anew from its
saved state, as in a new process, and evaluated at the step.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pdb import Pdb
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.files.names import LAST_STEP
from smdebug.rules.asking import ask
from smdebug.rules.findings import plain
from smdebug.rules.memory.state import read_state, restore_state, save_state
from smdebug.rules.outcomes import Behind, Failed, Found, NothingToCheck, NotSaved
from smdebug.rules.rule import Rule
from smdebug.rules.rule_sets import SET_NAMES
from smdebug.runs.evaluation.rule_steps import construct_class, rule_class
from smdebug.runs.opening import open_run
from smdebug.trials import Trial
from smdebug.trials.live.finding_run import read_collections
from smdebug.trials.past.as_of import AsOfTrial
from smdebug.trials.past.listed_history import ListedHistory


@dataclass(frozen=True)
class Replay:
    """What a rule saw and said at a step."""

    run: str
    rule: str
    step: int
    outcome: str
    """`found`, `passed`, `nothing to check`, `not saved` or `failed`."""
    sentence: str
    """Why, if it neither found anything nor passed."""
    findings: tuple[Mapping[str, Any], ...]
    state_before: Mapping[str, Any]
    """The attributes that the rule had kept from the steps before."""
    state_after: Mapping[str, Any]
    left_out: tuple[str, ...]
    """The attributes that are not plain data, and so are not kept."""
    steps_before: int
    tensors: int
    """The number of tensors that were saved at the step."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        lists = {"findings": list(self.findings), "left_out": list(self.left_out)}
        return {**vars(self), **lists}


class RuleDebugger(Pdb):
    """Python's debugger, which knows whether it was quit."""

    has_quit = False

    def set_quit(self) -> None:
        self.has_quit = True
        super().set_quit()


def replay(
    run: str | os.PathLike[str] | Trial,
    at: int,
    rule: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    file: str | None = None,
    progress: Callable[[int], Any] = lambda steps: None,
    debugger: RuleDebugger | None = None,
) -> Replay:
    """Evaluate the rule at the step as the application did when the step was new.

    A `debugger` stops at the first line of the rule's `invoke_at_step`, at that step alone.
    """
    trial = run if isinstance(run, Trial) else open_run(run)
    steps = trial.steps()
    place = bisect_left(steps, at)
    if steps[place : place + 1] != [at]:
        near = ", ".join(map(str, steps[max(0, place - 2) : place + 2])) or "none"
        raise SMDebugValueError(f"Step {at} of {trial.path} was not saved. Saved steps near it: {near}")
    if rule.lower() in SET_NAMES:
        raise SMDebugValueError(f"{rule} is a set of rules, and a replay is of one: name it")
    view = _view_of(trial)
    kind, given = rule_class(rule, file), dict(parameters or {})
    earlier = construct_class(kind, view, given)
    for step in steps[:place]:
        view.move_to(step, _workers(trial, step))
        if isinstance(failed := ask(earlier, step), Failed):
            raise SMDebugValueError(f"{rule} had failed at step {step}, before {at}: {failed.message}")
        progress(1)
    state = save_state(earlier)
    view.move_to(at, _workers(trial, at))
    later = construct_class(kind, view, given)
    restore_state(later, state)
    outcome = ask(later, at) if debugger is None else _asked_in(debugger, later, at)
    said, sentence = _in_words(outcome)
    trial.damaged_files.update(view.damaged_files)
    return Replay(
        trial.path,
        kind.__name__,
        at,
        said,
        sentence,
        findings=outcome.findings if isinstance(outcome, Found) else (),
        state_before=plain(read_state(state)),
        state_after=plain(read_state(save_state(later))),
        left_out=state.left_out,
        steps_before=place,
        tensors=len(view.tensor_names(step=at)),
    )


def _view_of(trial: Trial) -> AsOfTrial:
    opened = read_collections(trial.storage)
    if opened is None:
        raise SMDebugValueError(f"The collections of {trial.path} cannot be read")
    return AsOfTrial(
        trial.name,
        trial.storage,
        history=ListedHistory(trial.storage, LAST_STEP),
        collections=opened.collections,
        num_workers=opened.num_workers,
    )


def _asked_in(debugger: RuleDebugger, rule: Rule, step: int) -> Any:
    """Ask the rule in the debugger; quitting that raises `KeyboardInterrupt`."""
    invoke = rule.invoke_at_step
    vars(rule)["invoke_at_step"] = lambda at: debugger.runcall(invoke, at)
    try:
        outcome = ask(rule, step)
    finally:
        del vars(rule)["invoke_at_step"]  # it is no part of the rule's state
    if debugger.has_quit:
        raise KeyboardInterrupt
    return outcome


def _workers(trial: Trial, step: int) -> list[str]:
    return sorted(trial.index.workers_by_step[step])


def _in_words(outcome: Any) -> tuple[str, str]:
    match outcome:
        case Found():
            return "found", ""
        case NothingToCheck(missing):
            return "nothing to check", missing
        case NotSaved() | Behind():
            return "not saved", str(outcome)
        case Failed(message):
            return "failed", message
    return "passed", ""
