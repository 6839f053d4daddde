"""The tools of an agent: each opens a run of the given places, and returns a bounded answer."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smdebug.exceptions import MissingCollectionFiles, ObjectMissing, SMDebugError, SMDebugValueError
from smdebug.plain_text import nearest_of
from smdebug.rules.construction import make_rule
from smdebug.rules.generic import find_rule
from smdebug.runs.comparing import compare
from smdebug.runs.evaluation.choosing import suitable_defaults
from smdebug.runs.evaluation.diagnosing import Diagnosis, diagnose
from smdebug.runs.listing import ListedRun, listed_run, run_paths
from smdebug.runs.opening import open_run
from smdebug.runs.requests.stopping import request_stop
from smdebug.runs.tensors import every_name, tensor_over_steps
from smdebug.runs.training_loss import training_loss
from smdebug.service.attached_rules import AttachedRules
from smdebug.service.rules_file import RULES_FILE
from smdebug.trials import Trial
from smdebug.ui.agents import answers
from smdebug.ui.agents.marking import found_in, unmarked

MOST_LISTED = 30
MOST_KEPT = 8
"""Diagnoses that are kept until their run has grown."""
_LONGEST_REASON = 500

Answer = dict[str, Any]


@dataclass(frozen=True)
class Opened:
    """A run of the given places."""

    name: str
    trial: Trial


class Tools:
    """What an agent may ask of the runs at and below some places, and of no others."""

    def __init__(self, places: Sequence[str], *, rule_file: str | None = None, allow_stop: bool = False):
        self._places = list(dict.fromkeys(places))
        self._rule_file = rule_file
        self.allow_stop = allow_stop
        self._kept: OrderedDict[tuple[Any, ...], Diagnosis] = OrderedDict()

    def list_runs(self, contains: str = "") -> Answer:
        """List the runs: state, steps, loss. `contains` is a part of the name."""
        found = [pair for pair in self._runs() if unmarked(contains) in pair[0]]
        listed = [listed_run(path, name) for name, path in found[:MOST_LISTED]]
        return answers.runs_answer(listed, len(found), shown_name=_name_of)

    def diagnose(self, run: str) -> Answer:
        """Say what is wrong with a run."""
        opened = self._open(run)
        found = self._diagnosed(opened)
        return answers.diagnosis_answer(opened, found, _loss_of(opened.trial))

    def around(self, run: str, step: int) -> Answer:
        """Say what changed near a step."""
        opened = self._open(run)
        return answers.around_answer(opened, step, self._diagnosed(opened).issues)

    def tensor_statistics(self, run: str, tensor: str) -> Answer:
        """Show a tensor or scalar over the steps."""
        opened = self._open(run)
        known = every_name(opened.trial)
        name = found_in(tensor, known)
        if name is None:
            near = nearest_of(unmarked(tensor), known) or next(iter(known), None)
            hint = "" if near is None else f"; it has {near}, for example"
            raise SMDebugValueError(f"The run has no tensor {unmarked(tensor)[:80]}{hint}")
        return answers.tensor_answer(opened, name, list(tensor_over_steps(opened.trial, name)))

    def compare_runs(self, run: str, other: str) -> Answer:
        """Say where two runs diverge."""
        pair = self._open(run), self._open(other)
        problems = [self._diagnosed(opened).issues for opened in pair]
        found = compare(pair[0].trial, pair[1].trial)
        return answers.comparison_answer(*pair, found, problems)

    def evaluate_rule(self, run: str, rule: str, parameters: Mapping[str, Any] | None = None) -> Answer:
        """Evaluate a rule on what a run has saved."""
        opened = self._open(run)
        entry = _entry(rule, parameters)
        found = diagnose(opened.trial, [entry], file=self._rule_file, jobs=1)
        return answers.rule_answer(opened, found)

    def attach_rule(self, run: str, rule: str, parameters: Mapping[str, Any] | None = None) -> Answer:
        """Add a rule to those that judge a run from now on."""
        opened = self._open(run)
        trial = opened.trial
        entry = _entry(rule, parameters)
        found = find_rule(entry["rule"])  # one of a file is not known to who evaluates the run
        make_rule(found.load(), trial, entry["parameters"])  # a rule that fails would take the place of one
        attached = AttachedRules(trial.path, trial.storage, lambda: suitable_defaults(trial))
        return answers.attached_answer(opened, attached.add([entry]))

    def request_stop(self, run: str, reason: str) -> Answer:
        """Ask a training to stop at its next saved step."""
        if not self.allow_stop:
            raise SMDebugValueError("Stops are off: start smdebug mcp with --allow-stop")
        if not reason or len(reason) > _LONGEST_REASON:
            raise SMDebugValueError(f"reason must be a text of at most {_LONGEST_REASON} characters")
        opened = self._open(run)
        return answers.stop_answer(opened, request_stop(opened.trial.path, reason)[1])

    def _runs(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each run, and its path. A name that several places have is the path."""
        known: dict[str, str] = {}
        for place in self._places:
            try:
                for path, name in run_paths(place):
                    known[name if name not in known else path] = path
            except (MissingCollectionFiles, ObjectMissing):
                continue  # the first run is still to come
        return iter(known.items())

    def _open(self, run: str) -> Opened:
        by_name = dict(self._runs())
        name = found_in(run, by_name)
        if name is None:
            paths = {path: name for name, path in by_name.items()}
            path = found_in(run, paths)
            name = None if path is None else paths[path]
        if name is None:
            near = nearest_of(unmarked(run), by_name)
            hint = f"; did you mean {near}?" if near else "; list_runs lists them"
            raise SMDebugValueError(f"There is no run {unmarked(run)[:80]} here{hint}")
        return Opened(name, open_run(by_name[name]))

    def _diagnosed(self, opened: Opened) -> Diagnosis:
        """Return the diagnosis of the run as it is now, kept until the run or its rules change."""
        trial = opened.trial
        steps = trial.steps()
        rules = trial.storage.read(RULES_FILE) if trial.storage.exists(RULES_FILE) else b""
        key = (trial.path, len(steps), steps[-1] if steps else None, trial.loaded_all_steps, rules)
        found = self._kept.get(key)
        if found is None:
            found = diagnose(trial, file=self._rule_file, jobs=1)
            self._kept[key] = found
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return found


def answered(tool: Callable[..., Answer], arguments: Mapping[str, Any]) -> tuple[Answer, bool]:
    """Call a tool; return its answer, and whether it is an error."""
    try:
        return tool(**arguments), False
    except (SMDebugError, OSError) as error:
        return answers.error_answer(" ".join(str(error).split())), True
    except Exception as error:  # noqa: BLE001 - one surprising run must not end the server
        return answers.error_answer(f"smdebug itself failed: {type(error).__name__}: {error}"), True


def _entry(rule: str, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    name = unmarked(rule)
    texts = {
        unmarked(key): value if isinstance(value, str) else json.dumps(value)
        for key, value in (parameters or {}).items()
    }
    return {"name": name, "rule": name, "parameters": texts}


def _name_of(run: ListedRun) -> str:
    return run.name


def _loss_of(trial: Trial) -> Any:
    try:
        return training_loss(trial)
    except SMDebugError:  # a damaged file is named by the rules
        return None
