"""The process in which a custom rule runs: a separate script, started for each job.

    python -I -S -B child.py <file descriptor of the answers>  < job

It limits itself, loads the rule's code, and answers with one line of JSON per step. The code may do
anything to this process: the parent reads its output only as data.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smdebug.rules.rule import Rule
    from smdebug.storage import Storage
    from smdebug.trials.past.as_of import AsOfTrial

ENOUGH = 100_000  # bytes of answers after which no further step is evaluated
MARK = "\x1e"
SPARE_BYTES = 8 << 30  # of address space, for mapped files


class Answers:
    """The pipe for answers. A fork of this process exits instead of writing to it."""

    def __init__(self, file: int):
        self._file = file
        self._process = os.getpid()
        self.written = 0

    def give(self, answer: Mapping[str, Any]) -> None:
        if os.getpid() != self._process:
            os._exit(0)
        line = json.dumps(answer, allow_nan=False).encode() + b"\n"
        self.written += len(line)
        while line:
            line = line[os.write(self._file, line) :]


def main() -> None:
    """Do the job given on standard input."""
    answers = Answers(int(sys.argv[1]))
    begun = time.monotonic()
    job = json.load(sys.stdin)
    limit(job["limits"])
    sys.path += job["path"]
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    if "task" in job:
        judge_run(job, answers)
    else:
        work_off(job, answers, begun)


def judge_run(job: Mapping[str, Any], answers: Answers) -> None:
    """Judge a whole run, for a backtest."""
    import logging
    from pathlib import Path
    from tempfile import mkdtemp

    from smdebug.backtesting.deployed.task import Task
    from smdebug.backtesting.finding_runs import FoundRun
    from smdebug.backtesting.judging import Judged, judge

    logging.getLogger("smdebug").setLevel("CRITICAL")
    question = Task.from_dict(job["task"]).unpacked_in(Path(mkdtemp()))
    judged = judge(question, FoundRun(*job["judge"]), selected=Judged())  # by whoever planned it
    answers.give({"done": {"judged": judged.to_dict()}})


def work_off(job: Mapping[str, Any], answers: Answers, begun: float) -> None:
    """Evaluate the steps of the job in order, and answer after each."""
    from functions.telemetry import about_rule

    name, level = job["rule"].get("name", "?"), job["rule"].get("logging_level")
    work = Work(job)
    printed = [sys.stdout, sys.stderr]
    for step, workers in work.steps:
        used = time.monotonic() - begun
        if answers.written and (used > job["limits"]["work"] or answers.written > ENOUGH):
            break
        answers.give({"begun": step})
        for stream in printed:  # the parent logs what follows with this step
            print(f"{MARK}{step}", file=stream, flush=True)
        with about_rule(job["run"], name, step, level):
            outcome = work.evaluate(step, workers)
        if outcome["outcome"] == "unavailable":
            answers.give({"unavailable": outcome["text"]})
            return
        answers.give({"step": step, **outcome})
        if outcome["outcome"] in ("failed", "behind"):
            break
    answers.give({"done": work.remembered()})


def limit(limits: Mapping[str, Any]) -> None:
    """Limit the resources of this process and of those it starts."""
    seconds = int(limits["seconds"]) + 1
    most = {
        resource.RLIMIT_CPU: seconds * 4,  # of all threads together
        resource.RLIMIT_AS: (int(limits["memory_mb"]) << 20) + SPARE_BYTES,
        resource.RLIMIT_FSIZE: int(limits["file_bytes"]),
        resource.RLIMIT_CORE: 0,
        **({resource.RLIMIT_NPROC: int(limits["processes"])} if limits.get("processes") else {}),
    }
    for which, value in most.items():
        _, hard = resource.getrlimit(which)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))
    # If the machine runs out of memory, the kernel ends this process first.
    with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - nothing is imported that early
        file.write("1000")


class Work:
    """The evaluation of one rule at the steps of a job."""

    def __init__(self, job: Mapping[str, Any]):
        from functions.custom_rules.jobs import unpacked

        self._job = job
        self._about = unpacked(job["about"])
        about = self._about
        self.steps = [(step, about["workers"][at]) for step, at in about["steps"]]
        self._rule: Rule | None = None
        self._trial: AsOfTrial | None = None
        self._others: list[tuple[AsOfTrial, Callable[[int], bool]]] = []

    def evaluate(self, step: int, workers: list[str]) -> dict[str, Any]:
        """Evaluate the rule at a step and return the outcome as plain data."""
        from smdebug.exceptions import StepNotYetAvailable, StorageUnavailable
        from smdebug.rules.asking import AT_END, AT_STEP, ask, error_sentence
        from smdebug.rules.memory.state import restore_state, save_state
        from smdebug.rules.outcomes import Behind, Failed

        try:
            if self._rule is None:
                self._begin()
            assert self._rule is not None
            assert self._trial is not None
            self._trial.move_to(step, workers)
            before = save_state(self._rule) if self._others else None
            try:
                for other, has_passed in self._others:
                    other.limit_to(step, passed=has_passed(step))
            except StepNotYetAvailable as behind:
                return outcome_payload(Behind(str(behind)))
            occasion = AT_END if self._job.get("at_end") else AT_STEP
            outcome = ask(self._rule, step, occasion, not_its_fault=(StorageUnavailable,))
            if isinstance(outcome, Behind):
                if before is None:
                    return outcome_payload(Failed(outcome.problem))
                restore_state(self._rule, before)
        except StorageUnavailable as problem:
            return {"outcome": "unavailable", "text": shortened(str(problem))}
        except BaseException as problem:  # noqa: BLE001 - loading the rule may raise anything
            return outcome_payload(Failed(error_sentence(problem)))
        return outcome_payload(outcome)

    def remembered(self) -> dict[str, Any]:
        """Return the rule's state, or the key of the object that holds it."""
        from base64 import b64encode

        from smdebug.exceptions import SMDebugError
        from smdebug.rules.memory.state import save_state
        from smdebug.rules.rule import asks_at_end
        from smdebug.service.step_index.items import LARGEST_INLINE_STATE

        if self._rule is None or self._job.get("at_end"):  # a run may continue after its end
            return {"state": None}
        more = {"asks_at_end": True} if asks_at_end(type(self._rule)) else {}
        try:
            state = save_state(self._rule)
        except SMDebugError as problem:
            return {"state": {"problem": shortened(str(problem))}, **more}
        left_out = [shortened(name, 100) for name in state.left_out[:20]]
        if len(state) <= LARGEST_INLINE_STATE:
            kept = {"inline": b64encode(state.data).decode("ascii")}
        else:
            kept = {"key": self._job["state_key"]}
            self._storage.write(kept["key"], state.data)
        return {"state": kept, **({"left_out": left_out} if left_out else {}), **more}

    # Beginning

    def _begin(self) -> None:
        from base64 import b64decode

        from smdebug.rules.construction import make_rule
        from smdebug.rules.memory.state import restore_state
        from smdebug.storage import open_storage

        job, about = self._job, self._about
        self._storage = open_storage(job["location"])
        name = job["run"].rpartition("/")[2]
        trial = view(name, self._storage, about, through=max(step for step, _ in self.steps))
        for other in about["others"]:
            self._others.append(opened(other))
        rule = make_rule(
            rule_class(job),
            trial,
            job["rule"].get("parameters", {}),
            [other for other, _ in self._others],
        )
        state = job["state"]
        if state is not None:
            kept = b64decode(state["inline"]) if "inline" in state else self._storage.read(state["key"])
            restore_state(rule, kept)
        self._rule, self._trial = rule, trial


def view(name: str, storage: Storage, about: Mapping[str, Any], *, through: int) -> AsOfTrial:
    """Return a view of a run as the job describes it; the rest is read from storage."""
    from functions.evaluation.run_views import collections_of
    from functions.evaluation.shown_listing import ShownListing
    from smdebug.trials.past.as_of import AsOfTrial
    from smdebug.trials.past.history import ChainedHistory, MemoryHistory
    from smdebug.trials.past.listed_history import ListedHistory

    attempts = about.get("attempts")
    older = ShownListing(storage, through, attempts) if attempts else ListedHistory(storage, through)
    history = dict(about["history"])
    history["layouts"] = [
        layout if layout["names"] else named(layout, storage) for layout in history["layouts"]
    ]
    return AsOfTrial(
        name,
        storage,
        history=ChainedHistory(MemoryHistory.from_dict(history), older),
        collections=collections_of(about["collections"], storage),
        num_workers=about["num_workers"],
    )


def opened(other: Mapping[str, Any]) -> tuple[AsOfTrial, Callable[[int], bool]]:
    """Return another run, and a function that returns whether it has passed a step.

    Both use the step index if it knows the run, and otherwise list the run.
    """
    from functions.evaluation.run_views import as_listed
    from smdebug.files.names import END_MARKER, LAST_STEP
    from smdebug.storage import open_storage

    storage = open_storage(other["location"])
    name = other["run"].rpartition("/")[2]
    if "history" in other:
        seen = view(name, storage, other, through=LAST_STEP)
        return seen, lambda step: other["ended"] or step <= other["through"]
    seen = as_listed(name, storage)
    has_ended = any(key == END_MARKER for key in storage.list(END_MARKER))
    return seen, lambda step: has_ended


def named(layout: Mapping[str, Any], storage: Storage) -> dict[str, Any]:
    """Return the layout with its names, read from its first step if the job had no room for them."""
    from smdebug.trials.past.index_files import IndexFiles

    files = IndexFiles(storage, lambda key, problem: None)
    written = files.of(layout["first_step"], layout["workers"])
    names = sorted({name for index_file in written.values() for name in index_file.layout.of_tensor})
    return {**layout, "names": names}


def rule_class(job: Mapping[str, Any]) -> type[Rule]:
    """Return the rule's class, from the code in the job or deployed with this function."""
    from inspect import isclass

    from smdebug.exceptions import SMDebugValueError
    from smdebug.rules.rule import Rule

    wanted = job["rule"]["rule"]
    code, file = code_of(job)
    module = type(sys)("custom_rule")
    module.__file__ = file
    sys.modules["custom_rule"] = module
    exec(compile(code, file, "exec"), module.__dict__)  # noqa: S102 - the purpose of this process
    rules = {
        name: found
        for name, found in vars(module).items()
        if isclass(found) and issubclass(found, Rule) and found is not Rule
    }
    if wanted not in rules:
        there = ", ".join(sorted(rules)) or "no rule (a class that derives from smdebug.rules.Rule)"
        raise SMDebugValueError(f"{file} defines no rule {wanted}; there is {there}")
    return rules[wanted]


def code_of(job: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the code and the name of its file for messages; refuse code other than was claimed."""
    from hashlib import sha256
    from pathlib import Path

    from functions.custom_rules.sources import LARGEST_SOURCE, text_in
    from smdebug.exceptions import SMDebugValueError
    from smdebug.storage import ByteSpan, open_storage

    source = job["source"]
    if source is None:
        if not job["file"]:
            raise SMDebugValueError("No rule was deployed with this function, and none handed over")
        path = Path(job["file"])
        return path.read_bytes(), path.name
    if "text" in source:
        code = text_in(source["text"])
    else:
        place, _, name = source["uri"].rpartition("/")
        code = open_storage(place).read(name, ByteSpan(0, LARGEST_SOURCE + 1))
    if sha256(code).hexdigest() != source["sha256"]:
        raise SMDebugValueError(
            f"{source['uri']} is not what was claimed (sha256 {source['sha256'][:12]}…): "
            "it was changed meanwhile"
        )
    return code, source["uri"].rpartition("/")[2]


# The payload of the answer


def outcome_payload(outcome: Any) -> dict[str, Any]:
    """Return the outcome as plain data, cut to the size that an answer may have."""
    from smdebug.rules.outcomes import Behind, Failed, Found, NothingToCheck, NotSaved

    match outcome:
        case Found(findings):
            return {"outcome": "found", "findings": plain_findings(findings)}
        case NothingToCheck(text):
            kind = "nothing to check"
        case NotSaved(text):
            kind = "not saved"
        case Failed(text):
            kind = "failed"
        case Behind(text):
            kind = "behind"
        case _:
            return {"outcome": "passed"}
    return {"outcome": kind, **({"text": shortened(text)} if text else {})}


def plain_findings(findings: tuple[Mapping[str, Any], ...]) -> list[dict[str, Any]]:
    """Return the worst findings, cut to the size that an answer may have, as JSON has them."""
    from functions.custom_rules.answers import MOST_FINDINGS
    from functions.decisions.event_sizes import bounded_finding, worst

    bounded = [bounded_finding(finding) for finding in worst(findings, MOST_FINDINGS)]
    text = json.dumps(bounded, ensure_ascii=False).encode("utf-8", "replace")
    found: list[dict[str, Any]] = json.loads(text)
    return found


def shortened(text: str, longest: int = 1000) -> str:
    """Return the text as valid Unicode of at most `longest` characters."""
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


if __name__ == "__main__":
    main()
