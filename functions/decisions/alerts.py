"""Events as messages for people: an email, a text message, a line in a chat.

A message is composed from the detail of an event alone, so it can be composed again from the event.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from functions.decisions import detail_types
from functions.decisions.detail_types import NOT_CHECKED
from functions.decisions.diagnoses import SYMPTOM
from functions.decisions.event_sizes import cut
from smdebug.diagnosis.issues import Issue
from smdebug.diagnosis.wording import as_text
from smdebug.rules.findings import number
from smdebug.secrets.texts import redacted
from smdebug.service.records import STOP_TRAINING, ZOOM_IN, RuleStatus, RunVerdict

MAX_SUBJECT = 100  # of SNS, in ASCII
MAX_SMS = 140
MAX_LINE = 1000
MAX_LETTER = 60_000

Detail = Mapping[str, Any]

_VERDICTS: Mapping[str, str] = {
    RunVerdict.NO_ISSUES_FOUND: "no issues found",
    RunVerdict.ISSUES_FOUND: "issues found",
    RunVerdict.ERROR: "rules failed",
    RunVerdict.INCOMPLETE: "not fully evaluated",
    RunVerdict.NOT_CHECKED: "nothing checked",
}


def is_worth_a_message(detail_type: str, detail: Detail) -> bool:
    """Whether people should get a message: not for good news or what another message reports already."""
    match detail_type:
        case detail_types.CONDITION_MET | detail_types.ISSUE_RESOLVED:
            # The message about the cause names its symptoms.
            return (detail.get("issue") or {}).get("role") != SYMPTOM
        case detail_types.STATUS_CHANGE:
            return detail.get("status") == "Error"
        case detail_types.RUN_STATE_CHANGE:
            if detail.get("state") == "Finished":
                summary = detail.get("summary") or {}
                return bool(summary.get("verdict") != RunVerdict.NO_ISSUES_FOUND)
            return detail.get("state") == "Silent" or bool(detail.get("trouble"))
        case detail_types.ACTION_OUTCOME:
            return not detail.get("done")
        case _:
            return False


def subject_of_message(detail_type: str, detail: Detail) -> str:
    """Return the id of what a message is about: an issue has one message, however many rules find it."""
    issue = (detail.get("issue") or {}).get("id")
    match detail_type:
        case detail_types.CONDITION_MET if issue:
            return str(issue)
        case detail_types.ISSUE_RESOLVED if issue:
            return f"{issue}-resolved"
        case _:
            return str(detail.get("id") or "")


def subject(detail_type: str, detail: Detail) -> str:
    """Return the subject of the email: ASCII, one line, at most 100 characters."""
    return _in_ascii(_headline(detail_type, detail), MAX_SUBJECT)


def sms(detail_type: str, detail: Detail) -> str:
    """Return the message for a phone, with the worst finding: at most 140 characters."""
    worst = _worst(detail)
    text = _headline(detail_type, detail) + (f". {_evidence(worst)}" if worst else "")
    return _in_ascii(text, MAX_SMS)


def line(detail_type: str, detail: Detail) -> str:
    """Return the event in one line without quotes, which an input transformer can insert into any JSON."""
    worst = _worst(detail)
    parts = [_headline(detail_type, detail), _evidence(worst) if worst else _why(detail)]
    count = _count(detail)
    if count > 1:
        parts.append(f"and {count - 1} more")
    parts.append(str(detail.get("location") or ""))
    text = " · ".join(part for part in parts if part)
    return cut(" ".join(_printable(text).replace('"', "'").replace("\\", "/").split()), MAX_LINE)


def email(detail_type: str, detail: Detail) -> str:
    """Return the email: what happened, the evidence, the run, and what to do."""
    write = _LETTERS.get(detail_type, _any_letter)
    return cut("\n".join(_printable(text) for text in write(detail)).strip(), MAX_LETTER) + "\n"


def seconds_to_alert(detail: Detail) -> float | None:
    """Return the seconds from saving to publishing; None if the times are unknown."""
    times = detail.get("times") or {}
    begin = _read(times.get("saved")) or _read(times.get("uploaded"))
    end = _read(times.get("published")) or _read(times.get("evaluated"))
    return None if begin is None or end is None else (end - begin).total_seconds()


# Headlines


def _headline(detail_type: str, detail: Detail) -> str:
    run, name = _run_name(detail), _rule_name(detail)
    match detail_type:
        case detail_types.CONDITION_MET:
            late = "late " if detail.get("late") else ""
            return f"{name} detected an issue at {late}step {detail.get('step')} of {run}"
        case detail_types.ISSUE_RESOLVED:
            return f"The issue of {name} was resolved at step {detail.get('step')} of {run}"
        case detail_types.STATUS_CHANGE:
            return f"{name} is {detail.get('status')} on {run}"
        case detail_types.RUN_STATE_CHANGE:
            problem = detail.get("trouble")
            verdict = (detail.get("summary") or {}).get("verdict")
            known = f": {_VERDICTS.get(verdict, verdict)}" if verdict else ""
            with_problem = ", with a problem" if problem else ""
            return f"Run {run} is {detail.get('state')}{known}{with_problem}"
        case detail_types.ACTION_OUTCOME:
            done = "done" if detail.get("done") else "NOT done"
            action = (detail.get("action") or {}).get("name", "")
            return f"Action {action} of {name} {done} for {run}"
        case _:
            job = detail.get("TrainingJobName") or run
            return f"{detail_type}: {job}"


def _why(detail: Detail) -> str:
    text = detail.get("trouble") or detail.get("message") or detail.get("reason") or ""
    return str(text).strip()


# Letters


def _finding_letter(detail: Detail) -> Iterator[str]:
    step, count = detail.get("step"), _count(detail)
    yield f"Rule {_rule_name(detail)} detected an issue."
    yield ""
    yield from _diagnosis(detail)
    yield from _what_was_found(detail)
    yield ""
    yield f"Run:        {detail.get('location')}"
    if detail.get("job"):
        yield f"Job:        {detail['job']}"
    yield f"Rule:       {detail.get('rule')}{_parameters(detail)}"
    yield f"Step:       {step}{_mode(detail)}"
    since = (detail.get("issue") or {}).get("since")
    if since is not None and since != step:
        yield f"Since step: {since}"
    good = detail.get("last_good_step")
    yield f"Last good:  {f'step {good}' if good is not None else 'no earlier step passed'}"
    seconds = seconds_to_alert(detail)
    if seconds is not None and seconds >= 0:
        yield f"Alerted:    {_duration(seconds)} after the step was saved"
    yield ""
    if detail.get("late"):
        yield "This step arrived after later ones were evaluated."
    if detail.get("catch_up"):
        yield "The rule was attached after this step. It is catching up and starts no actions."
    for action in detail.get("actions") or ():
        yield f"Action started: {_action(action)}."
    yield "What to do:"
    yield from _advice(detail, count)


def _diagnosis(detail: Detail) -> Iterator[str]:
    payload = detail.get("diagnosis")
    if not isinstance(payload, Mapping) or not payload.get("cause"):
        return
    if payload.get("role") == SYMPTOM:
        yield "It is probably a symptom of another problem:"
    yield from as_text(Issue.from_dict(payload), indent="  ")
    yield ""
    yield "Found by this rule:"


def _what_was_found(detail: Detail) -> Iterator[str]:
    evidence = detail.get("evidence") or {}
    listed = evidence.get("worst") or ()
    if not listed:
        yield str(detail.get("reason") or "")
    for finding in listed:
        yield f"  {_evidence(finding)}"
    rest = _count(detail) - len(listed)
    if rest > 0:
        where = f", all in {evidence['rest']}" if evidence.get("rest") else ""
        yield f"  … and {rest} more{where}"


def _advice(detail: Detail, count: int) -> Iterator[str]:
    finding: Mapping[str, Any] = _worst(detail) or {}
    yield "  inspect it:"
    yield "    from smdebug.trials import create_trial"
    yield f"    trial = create_trial({str(detail.get('location'))!r})"
    if finding.get("tensor"):
        yield f"    trial.tensor({finding['tensor']!r}).value({detail.get('step')})"
    good = detail.get("last_good_step")
    if good is not None:
        yield f"  compare with step {good}, or resume from a checkpoint of that step"
    yield "  if this is not a problem: relax the rule in rules.json beside the run, or remove it there"
    yield f"Event id: {detail.get('id')}"


def _resolved_letter(detail: Detail) -> Iterator[str]:
    issue = detail.get("issue") or {}
    yield f"Rule {_rule_name(detail)} passed at step {detail.get('step')}{_mode(detail)}."
    yield ""
    yield f"Run:        {detail.get('location')}"
    yield f"Rule:       {detail.get('rule')}{_parameters(detail)}"
    yield f"The issue was open from step {issue.get('since')}, last found at step {issue.get('last_found')}."
    yield ""
    yield "Nothing needs to be done. The rule's status remains IssuesFound."


def _status_letter(detail: Detail) -> Iterator[str]:
    yield (
        f"The status of rule {_rule_name(detail)} changed from {detail.get('previous_status')} "
        f"to {detail.get('status')}."
    )
    yield ""
    yield _why(detail)
    yield ""
    yield f"Run:        {detail.get('location')}"
    yield f"Rule:       {detail.get('rule')}{_parameters(detail)}"
    yield f"Step:       {detail.get('step')}{_mode(detail)}"
    yield ""
    if detail.get("status") == "Error":
        yield "What to do: correct the rule in rules.json beside the run (it is then evaluated again from"
        yield "the first step), or remove it there. The other rules continue."


def _run_letter(detail: Detail) -> Iterator[str]:
    yield f"The run is {detail.get('state')}."
    yield ""
    yield f"Run:        {detail.get('location')}"
    if detail.get("job"):
        yield f"Job:        {detail['job']}"
    if detail.get("trouble"):
        yield f"Problem:    {detail['trouble']}"
    if detail.get("state") == "Silent":
        yield ""
        yield "Nothing has been saved for longer than expected. Is the training still running?"
    summary = detail.get("summary")
    if summary:
        verdict = summary.get("verdict")
        if verdict:
            yield f"Verdict:    {_VERDICTS.get(verdict, verdict)}"
        yield f"Steps:      {summary.get('steps')} evaluated, the last is {summary.get('last_step')}"
        if summary.get("partly_evaluated"):
            yield f"            {summary['partly_evaluated']} evaluated without the values of some workers"
        if summary.get("not_evaluated"):
            yield f"            {summary['not_evaluated']} not evaluated: files of workers did not arrive"
        if verdict == RunVerdict.NOT_CHECKED:
            yield ""
            yield "No step held anything that a rule could check, so nothing is known of the training."
            yield "What to do: save what the rules need, or attach others in rules.json beside the run."
        yield ""
        for rule in summary.get("rules") or ():
            yield _line_of_rule(rule)


def _line_of_rule(rule: Detail) -> str:
    """Return a rule of the summary in a line. One that had nothing to check has not passed."""
    status, name, found = rule.get("status"), rule.get("name"), rule.get("last_found")
    if status == RuleStatus.NOT_CHECKED:
        missing = str(rule.get("reason") or "").partition(f"{NOT_CHECKED}: ")[2]
        return f"  {'not checked':<14} {name}" + (f": {missing}" if missing else "")
    return f"  {status:<14} {name}" + (f", last at step {found}" if found is not None else "")


def _action_letter(detail: Detail) -> Iterator[str]:
    done = "was performed" if detail.get("done") else "was NOT performed"
    yield f"The action '{_action(detail.get('action') or {})}' {done}."
    yield ""
    yield str(detail.get("message") or "")
    yield ""
    yield f"Run:        {detail.get('location')}"
    yield f"Rule:       {_rule_name(detail)}, at step {detail.get('step')}"
    yield f"Finding:    {detail.get('finding_id')}"


def _any_letter(detail: Detail) -> Iterator[str]:
    for key, value in detail.items():
        yield f"{key}: {value}"


_LETTERS: Mapping[str, Callable[[Detail], Iterator[str]]] = {
    detail_types.CONDITION_MET: _finding_letter,
    detail_types.ISSUE_RESOLVED: _resolved_letter,
    detail_types.STATUS_CHANGE: _status_letter,
    detail_types.RUN_STATE_CHANGE: _run_letter,
    detail_types.ACTION_OUTCOME: _action_letter,
}


# Words


def _evidence(finding: Mapping[str, Any]) -> str:
    """`gradient/fc2_weight: mean of |x| is 3.1e-09 (limit 1e-07) at step 400`."""
    message = str(finding.get("message") or "").strip()
    if not message:
        message = str(finding.get("tensor") or "the run")
        if finding.get("value") is not None:
            message += f": {finding.get('statistic') or 'value'} is {number(finding['value'])}"
        if finding.get("threshold") is not None:
            message += f" (limit {number(finding['threshold'])})"
    tensor = finding.get("tensor")
    if tensor and str(tensor) not in message:
        message = f"{tensor}: {message}"
    step = finding.get("step")
    return f"{message} at step {step}" if step is not None and "step" not in message else message


def _worst(detail: Detail) -> Mapping[str, Any] | None:
    listed = (detail.get("evidence") or {}).get("worst") or ()
    return listed[0] if listed else None


def _count(detail: Detail) -> int:
    return int((detail.get("evidence") or {}).get("count") or 0)


def _rule_name(detail: Detail) -> str:
    """Return the rule's configured name, with its class if that differs."""
    rule = str(detail.get("rule") or "")
    name = str((detail.get("configuration") or {}).get("name") or rule)
    return name if name == rule else f"{name} ({rule})"


def _run_name(detail: Detail) -> str:
    """Return the job's name, or else the last two parts of the run's location."""
    return str(detail.get("job") or "/".join(str(detail.get("run") or "").split("/")[-2:]))


def _parameters(detail: Detail) -> str:
    given = (detail.get("configuration") or {}).get("parameters") or {}
    return f" ({', '.join(f'{key}={value}' for key, value in given.items())})" if given else ""


def _mode(detail: Detail) -> str:
    mode = detail.get("mode")
    if not mode or mode == "GLOBAL":
        return ""
    return f" (step {detail['mode_step']} of {mode})" if detail.get("mode_step") is not None else f" ({mode})"


def _action(action: Mapping[str, Any]) -> str:
    name = str(action.get("name") or "")
    to = action.get("endpoint")
    known = {STOP_TRAINING: "stop the training", ZOOM_IN: "save the whole tensors"}
    return known.get(name, f"{name} to {to}" if to else name)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _read(text: Any) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None


def _in_ascii(text: str, longest: int) -> str:
    plain = unicodedata.normalize("NFKD", redacted(text).replace("…", "..."))
    known = plain.encode("ascii", "replace").decode()
    one_line = " ".join("".join(c if c.isprintable() else " " for c in known).split())
    return one_line if len(one_line) <= longest else f"{one_line[: longest - 3]}..."


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in redacted(text))
