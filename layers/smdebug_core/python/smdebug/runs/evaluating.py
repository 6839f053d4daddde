"""Rules over a saved run, on this machine: what each of them finds, at which steps.

Several processes share the steps where a rule remembers nothing of them, or nothing new. Whether that is
so is not guessed: each process begins with the state that the rule had after its first steps, and what
it says counts only if all the steps before have left the rule in that very state. From where they have
not, the others begin again with the new state; and where it goes on changing, one process takes the
steps in order. The findings are the same as those of one process.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from smdebug.exceptions import (
    NoMoreData,
    RuleEvaluationConditionMet,
    SMDebugError,
    SMDebugRuntimeError,
    SMDebugValueError,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.rules.construction import make_rule
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import evaluation_at_end, has_seen_all
from smdebug.rules.state import RuleState, restore_state, save_state
from smdebug.runs.opening import open_run
from smdebug.runs.overview import thinned
from smdebug.service.records import RuleConfiguration, RuleStatus
from smdebug.service.rules_file import RULES_FILE, parse_rules
from smdebug.storage import open_storage
from smdebug.trials import Trial

MOST_EVIDENCE = 20  # findings kept of one step
MOST_STEPS = 1000  # steps of which the findings are kept
WORTH_A_PROCESS = 64  # steps: fewer are looked at before another process has begun
_CHUNKS_PER_PROCESS = 4
_ATTEMPTS = 4
_SECONDS_A_FILE = 1e-3  # to read an index file of some hundred tensors


@dataclass(frozen=True)
class StepFindings:
    """What a rule found at one step: how much, and the first of it."""

    step: int
    mode: str | None
    mode_step: int | None
    count: int
    findings: tuple[Mapping[str, Any], ...]  # as `Finding.to_dict` has them

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "findings": [dict(one) for one in self.findings]}


@dataclass(frozen=True)
class RuleResult:
    """One rule over a run."""

    name: str
    rule: str
    parameters: Mapping[str, Any]
    status: RuleStatus
    looked: int = 0  # steps
    without_data: int = 0  # steps that had nothing for the rule to look at
    first_step: int | None = None
    last_step: int | None = None
    found: tuple[StepFindings, ...] = ()
    steps_found: tuple[int, ...] = ()
    error: str = ""
    seconds: float = 0.0
    processes: int = 1

    @property
    def has_found(self) -> bool:
        return bool(self.steps_found)

    @property
    def has_seen(self) -> bool:
        """Was there anything that the rule could look at?"""
        return self.has_found or self.looked > self.without_data

    def summary(self) -> str:
        """The verdict in a sentence."""
        if self.error:
            return f"{self.name} failed: {self.error}"
        if not self.looked:
            return f"{self.name} found no step that it could look at."
        steps = f"{self.looked:,} step{'s' * (self.looked != 1)}"
        if not self.has_found and self.without_data >= self.looked:
            return f"{self.name} had nothing to look at, at any of {steps}."
        if not self.has_found:
            hint = f", {self.without_data} of which had nothing to look at" * bool(
                self.without_data
            )
            return f"{self.name} found nothing at {steps}{hint}."
        number = len(self.steps_found)
        first, last = self.steps_found[0], self.steps_found[-1]
        if number == 1:
            return f"{self.name} found something at step {first}, of {steps}."
        return f"{self.name} found something at {number:,} of {steps}, from step {first} to step {last}."

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "name": self.name,
            "rule": self.rule,
            "parameters": dict(self.parameters),
            "status": self.status.value,
            "looked": self.looked,
            "without_data": self.without_data,
            "first_step": self.first_step,
            "last_step": self.last_step,
            "steps_found": list(self.steps_found),
            "found": [one.to_dict() for one in self.found],
            "error": self.error or None,
            "seconds": round(self.seconds, 3),
            "processes": self.processes,
        }


@dataclass(frozen=True)
class Asked:
    """What another process needs to make the same rule."""

    path: str
    configuration: RuleConfiguration
    file: str | None = None  # of a custom rule


def evaluate(
    run: str | os.PathLike[str] | Trial,
    rules: Sequence[str | RuleConfiguration | Mapping[str, Any]] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    most_steps: int | None = None,
    worth_a_process: int = WORTH_A_PROCESS,
    progress: Callable[[int], Any] = lambda steps: None,
) -> list[RuleResult]:
    """What these rules say of a saved run; without `rules`, those of the `rules.json` beside it.

    A rule is the name of a built-in one, an entry as rules.json has it, or a class in `file`. Actions
    are not taken: this looks at what has been. `progress` is told of steps as they are done. `jobs` is how
    many processes there are at most; without, there are several where that is likely to be faster. Of more
    than `most_steps` steps, so many are looked at, evenly spread.
    """
    trial = run if isinstance(run, Trial) else open_run(run)
    wanted = configurations(trial, rules)
    location = trial.storage.location
    results = []
    for one in wanted:
        source = None if file is None else os.fspath(file)
        asked = Asked(location, replace(one, actions=()), source)
        results.append(_evaluated(asked, trial, jobs, most_steps, worth_a_process, progress))
    return results


def configurations(
    trial: Trial, rules: Sequence[str | RuleConfiguration | Mapping[str, Any]] | None
) -> tuple[RuleConfiguration, ...]:
    """The rules that are meant; `SMDebugValueError` if none are."""
    if rules is None:
        try:
            data = trial.storage.read(RULES_FILE)
        except SMDebugError as error:
            raise SMDebugValueError(
                f"{trial.path} has no {RULES_FILE} that says which rules look at it: name the rules"
            ) from error
        return parse_rules(data, file=RULES_FILE)
    found: list[RuleConfiguration] = []
    for one in rules:
        if isinstance(one, RuleConfiguration):
            found.append(one)
        else:
            found += parse_rules([one], file="the rules given")
    if not found:
        raise SMDebugValueError("There is no rule to evaluate: name one")
    return tuple(found)


def rule_class(name: str, file: str | None) -> type[Rule]:
    """The rule of that name: a class in the file, or a built-in one."""
    from smdebug.rules.generic import find_rule
    from smdebug.rules.loading import load_rule_file, rules_in

    if file is not None:
        rules = rules_in(load_rule_file(file))
        for known, rule in rules.items():
            if known.lower() == name.lower():
                return rule
        if not rules:
            raise SMDebugValueError(
                f"{file} defines no rule: a class derived from smdebug.rules.Rule"
            )
        try:
            return find_rule(name).load()
        except SMDebugValueError:
            told = ", ".join(rules)
            raise SMDebugValueError(f"{file} defines no rule {name!r}, but {told}") from None
    return find_rule(name).load()


def made(asked: Asked, trial: Trial) -> Rule:
    """The rule, looking at that trial."""
    configuration = asked.configuration
    if configuration.source is not None and asked.file is None:
        raise SMDebugValueError(
            f"{configuration.name} is in {configuration.source}: fetch that file and give its path"
        )
    return make_rule(
        rule_class(configuration.rule, asked.file),
        trial,
        configuration.parameters,
        lambda: [open_run(path) for path in configuration.other_trials],
    )


def steps_wanted(trial: Trial, configuration: RuleConfiguration) -> list[int]:
    """The steps of the run that the rule is to be shown."""
    first, end = configuration.start_step, configuration.end_step
    return [step for step in trial.steps() if first <= step and (end is None or step < end)]


# One rule


@dataclass
class Looked:
    """What a rule said at some steps, and what it remembers after them."""

    looked: int = 0
    without_data: int = 0
    found: list[StepFindings] = field(default_factory=list)
    steps_found: list[int] = field(default_factory=list)
    state: RuleState = field(default_factory=lambda: RuleState(b""))
    error: str = ""
    stopped: bool = False

    def join(self, later: Looked) -> None:
        self.looked += later.looked
        self.without_data += later.without_data
        self.steps_found += later.steps_found
        self.found += later.found[: max(0, MOST_STEPS - len(self.found))]
        self.state = later.state
        self.error = later.error
        self.stopped = later.stopped

    @property
    def is_over(self) -> bool:
        return bool(self.error) or self.stopped


def _evaluated(
    asked: Asked,
    trial: Trial,
    jobs: int | None,
    most_steps: int | None,
    worth: int,
    progress: Callable[[int], Any],
) -> RuleResult:
    begun = time.perf_counter()
    configuration = asked.configuration
    steps = steps_wanted(trial, configuration)
    if most_steps is not None:
        steps = thinned(steps, max(2, most_steps))
    rule = made(asked, trial)
    first = steps[: max(2, worth // 4)]
    said = look_at(rule, first)
    progress(len(first))
    rest = steps[len(first) :]
    processes = 1
    if rest and not said.is_over:
        each = (time.perf_counter() - begun) / len(first)
        processes = _processes(trial, len(rest), each, jobs, worth)
        said, processes = _go_on(asked, rule, said, rest, processes, progress)
    if steps and not said.is_over and has_seen_all(rule, steps[-1]):
        restore_state(rule, said.state)  # others may have looked at the last steps
        _look_at_end(rule, steps[-1], said)
    status = RuleStatus.ISSUES_FOUND if said.steps_found else RuleStatus.NO_ISSUES_FOUND
    return RuleResult(
        name=configuration.name,
        rule=configuration.rule,
        parameters=dict(configuration.parameters),
        status=RuleStatus.ERROR if said.error else status,
        looked=said.looked,
        without_data=said.without_data,
        first_step=steps[0] if steps else None,
        last_step=steps[-1] if steps else None,
        found=tuple(said.found),
        steps_found=tuple(said.steps_found),
        error=said.error,
        seconds=time.perf_counter() - begun,
        processes=processes,
    )


def look_at(rule: Rule, steps: Iterable[int]) -> Looked:
    """Invoke the rule at these steps, in order."""
    said = Looked()
    trial = rule.base_trial
    for step in steps:
        try:
            rule.invoke(step)
        except RuleEvaluationConditionMet as met:
            said.steps_found.append(step)
            if len(said.found) < MOST_STEPS:
                said.found.append(_found_at(step, met, trial))
            said.stopped = met.end_of_rule
        except (TensorUnavailableForStep, StepUnavailable, TensorUnavailable):
            said.without_data += 1
            continue
        except NoMoreData:
            said.stopped = True
            break
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a custom rule can raise anything
            said.error = f"{type(error).__name__} at step {step}: {error}"
            break
        said.looked += 1
        said.without_data += rule.looked is False
        if said.stopped:
            break
    said.state = save_state(rule)
    return said


def _found_at(step: int, met: RuleEvaluationConditionMet, trial: Trial) -> StepFindings:
    mode, mode_step = trial.mode_modestep(step)
    findings = met.findings
    return StepFindings(
        step=step,
        mode=None if mode is None else mode.name,
        mode_step=mode_step,
        count=len(findings),
        findings=tuple(one.to_dict() for one in findings[:MOST_EVIDENCE]),
    )


def _look_at_end(rule: Rule, last_step: int, said: Looked) -> None:
    """Add what the rule says at the end of the run. It counts with the last step."""
    try:
        met = evaluation_at_end(rule, last_step).met
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a custom rule can raise anything
        said.error = f"{type(error).__name__} at the end of the run: {error}"
        return
    if met is None:
        return
    found = _found_at(last_step, met, rule.base_trial)
    if said.steps_found[-1:] != [last_step]:
        said.steps_found.append(last_step)
    elif said.found and said.found[-1].step == last_step:
        at_step = said.found.pop()
        together = (*at_step.findings, *found.findings)[:MOST_EVIDENCE]
        found = replace(found, count=at_step.count + found.count, findings=together)
    if len(said.found) < MOST_STEPS:
        said.found.append(found)


# In several processes


def _processes(trial: Trial, steps: int, each: float, jobs: int | None, worth: int) -> int:
    """How many are worth it: each has to begin, and to open the run."""
    if trial.storage.location.startswith("memory:"):
        return 1
    if jobs is not None:
        return min(jobs, 1 + steps // max(1, worth))
    cores = min(8, os.cpu_count() or 1)
    opening = 0.5 + _SECONDS_A_FILE * len(trial.index.workers_by_step) * max(1, trial.num_workers)
    return cores if steps * each * (1 - 1 / cores) > 2 * opening else 1


def _go_on(
    asked: Asked,
    rule: Rule,
    said: Looked,
    steps: list[int],
    processes: int,
    progress: Callable[[int], Any],
) -> tuple[Looked, int]:
    """The same as in one process. How many there were: 1 where the rule remembers its steps."""
    before = said.state
    second, rest = steps[:1], steps[1:]
    said.join(look_at(rule, second))
    progress(len(second))
    if said.is_over or not rest:
        return said, 1
    if processes == 1 or said.state != before or said.state.left_out:
        said.join(_in_order(rule, rest, progress))
        return said, 1
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    size = max(1, -(-len(rest) // (processes * _CHUNKS_PER_PROCESS)))
    chunks = list(_pieces(rest, size))
    # Not forked: a fork would take this process's threads' locks with it, held for ever.
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin_quietly) as pool:
        for _ in range(_ATTEMPTS):
            expected = said.state
            coming = [pool.submit(_look_from, asked, expected, chunk) for chunk in chunks]
            for chunk, future in zip(list(chunks), coming, strict=True):
                try:
                    said.join(future.result())
                except BrokenProcessPool as error:
                    raise SMDebugRuntimeError(
                        f"A process in which {rule.rule_name} looked at steps from {chunk[0]} on has died; "
                        "there may be too little memory for several. Ask for one: jobs=1"
                    ) from error
                progress(len(chunk))
                chunks.pop(0)
                if said.is_over or said.state != expected:
                    break
            for future in coming:
                future.cancel()
            if said.is_over or not chunks:
                return said, processes
    restore_state(rule, said.state)
    said.join(_in_order(rule, [step for chunk in chunks for step in chunk], progress))
    return said, processes


def _in_order(rule: Rule, steps: list[int], progress: Callable[[int], Any]) -> Looked:
    said = Looked(state=save_state(rule))
    for some in _pieces(steps, 16):
        said.join(look_at(rule, some))
        progress(len(some))
        if said.is_over:
            break
    return said


_trial_of_this_process: list[Trial] = []


def _begin_quietly() -> None:
    """What a process does first: Ctrl-C ends it at once, and the one who began it tells of that."""
    import signal

    from smdebug.logger import get_logger

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    get_logger().setLevel("CRITICAL")
    sys.stdout = sys.stderr  # what a rule prints is not among the answers


def _look_from(asked: Asked, state: RuleState, steps: list[int]) -> Looked:
    """In another process: what the rule says of these steps if that is what it remembers."""
    if not _trial_of_this_process:
        _trial_of_this_process.append(open_run(open_storage(asked.path)))
    (trial,) = _trial_of_this_process
    rule = made(asked, trial)
    restore_state(rule, state)
    return look_at(rule, steps)


def _pieces(steps: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(steps), size):
        yield steps[start : start + size]
