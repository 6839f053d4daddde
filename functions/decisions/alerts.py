"""Events in words: an e-mail somebody can act on, a text message, a line in a chat.

They are made from the detail of an event alone, so whoever has the event can make them again.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from functions.decisions import detail_types
from smdebug.rules.findings import number
from smdebug.service.records import STOP_TRAINING

MAX_SUBJECT = 100  # of SNS, in ASCII
MAX_SMS = 140
MAX_LINE = 1000
MAX_LETTER = 60_000

Detail = Mapping[str, Any]


ALARM = "CloudWatch Alarm State Change"


def is_worth_a_message(detail_type: str, detail: Detail) -> bool:
    """Does somebody want to be told of it? What is told in other words already, or all went well: no."""
    match detail_type:
        case detail_types.CONDITION_MET | detail_types.ISSUE_RESOLVED:
            return True
        case detail_types.STATUS_CHANGE:
            return detail.get("status") == "Error"
        case detail_types.RUN_STATE_CHANGE:
            if detail.get("state") == "Finished":
                return bool(
                    {"IssuesFound", "Error"}
                    & set((detail.get("summary") or {}).get("statuses") or ())
                )
            return detail.get("state") == "Silent" or bool(detail.get("trouble"))
        case detail_types.ACTION_OUTCOME:
            return not detail.get("done")
        case _:
            return detail_type == ALARM


def subject(detail_type: str, detail: Detail) -> str:
    """The subject of the e-mail: ASCII, one line, at most 100 characters."""
    return _in_ascii(_headline(detail_type, detail), MAX_SUBJECT)


def sms(detail_type: str, detail: Detail) -> str:
    """The same for a phone, with the worst of what was found: at most 140 characters."""
    worst = _worst(detail)
    text = _headline(detail_type, detail) + (f". {_evidence(worst)}" if worst else "")
    return _in_ascii(text, MAX_SMS)


def line(detail_type: str, detail: Detail) -> str:
    """The event in one line, without quotes: what an input transformer can put into any JSON."""
    worst = _worst(detail)
    parts = [_headline(detail_type, detail), _evidence(worst) if worst else _why(detail)]
    count = _count(detail)
    if count > 1:
        parts.append(f"and {count - 1} more")
    parts.append(str(detail.get("location") or ""))
    text = " · ".join(part for part in parts if part)
    return _cut(" ".join(_printable(text).replace('"', "'").replace("\\", "/").split()), MAX_LINE)


def webhook(detail_type: str, detail: Detail) -> dict[str, str]:
    """What Slack, and whoever takes the same form, wants to be sent."""
    return {"text": line(detail_type, detail)}


def email(detail_type: str, detail: Detail) -> str:
    """The e-mail: what happened, to which run, since when, the evidence, and what to do now."""
    write = _LETTERS.get(detail_type, _any_letter)
    return _cut("\n".join(_printable(text) for text in write(detail)).strip(), MAX_LETTER) + "\n"


def seconds_to_alert(detail: Detail) -> float | None:
    """From the hook's saving to the publishing, as far as both are known."""
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
            return f"{name} found something at {late}step {detail.get('step')} of {run}"
        case detail_types.ISSUE_RESOLVED:
            return f"{name} resolved at step {detail.get('step')} of {run}"
        case detail_types.STATUS_CHANGE:
            return f"{name} is {detail.get('status')} on {run}"
        case detail_types.RUN_STATE_CHANGE:
            problem = detail.get("trouble")
            return f"Run {run} is {detail.get('state')}" + (", and in trouble" if problem else "")
        case detail_types.ACTION_OUTCOME:
            done = "done" if detail.get("done") else "NOT done"
            action = (detail.get("action") or {}).get("name", "")
            return f"Action {action} of {name} {done} for {run}"
        case _ if detail_type == ALARM:
            return f"Alarm of the debugger: {detail.get('alarmName')}"
        case _:
            job = detail.get("TrainingJobName") or run
            return f"{detail_type}: {job}"


def _why(detail: Detail) -> str:
    text = detail.get("trouble") or detail.get("message") or detail.get("reason") or ""
    return str(text).strip()


# Letters


def _finding_letter(detail: Detail) -> Iterator[str]:
    step, count = detail.get("step"), _count(detail)
    yield f"The rule {_rule_name(detail)} has found something wrong in a training."
    yield ""
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
    yield f"Last good:  {f'step {good}' if good is not None else 'no step was good before'}"
    seconds = seconds_to_alert(detail)
    if seconds is not None and seconds >= 0:
        yield f"Told after: {_duration(seconds)} from being saved"
    yield ""
    if detail.get("late"):
        yield "This step arrived after later ones had been looked at."
    if detail.get("catch_up"):
        yield "The rule was attached later than this step: it is catching up, and does no actions."
    for action in detail.get("actions") or ():
        yield f"Being done now: {_action(action)}."
    yield "What to do next:"
    yield from _advice(detail, count)


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
    yield "  look at it:"
    yield "    from smdebug.trials import create_trial"
    yield f"    trial = create_trial({str(detail.get('location'))!r})"
    if finding.get("tensor"):
        yield f"    trial.tensor({finding['tensor']!r}).value({detail.get('step')})"
    good = detail.get("last_good_step")
    if good is not None:
        yield f"  compare with step {good}, or go back to a checkpoint of it"
    yield "  if this is no problem: loosen the rule in rules.json beside the run, or take it out there"
    yield f"The event has the id {detail.get('id')}."


def _resolved_letter(detail: Detail) -> Iterator[str]:
    issue = detail.get("issue") or {}
    yield f"The rule {_rule_name(detail)} finds nothing any more at step {detail.get('step')}{_mode(detail)}."
    yield ""
    yield f"Run:        {detail.get('location')}"
    yield f"Rule:       {detail.get('rule')}{_parameters(detail)}"
    yield f"The issue was open from step {issue.get('since')}, last seen at step {issue.get('last_found')}."
    yield ""
    yield "There is nothing to do. The rule's status stays IssuesFound, as it was found once."


def _status_letter(detail: Detail) -> Iterator[str]:
    yield (
        f"The status of the rule {_rule_name(detail)} is {detail.get('status')} "
        f"(it was {detail.get('previous_status')})."
    )
    yield ""
    yield _why(detail)
    yield ""
    yield f"Run:        {detail.get('location')}"
    yield f"Rule:       {detail.get('rule')}{_parameters(detail)}"
    yield f"Step:       {detail.get('step')}{_mode(detail)}"
    yield ""
    if detail.get("status") == "Error":
        yield "What to do next: put the rule right in rules.json beside the run (it is then evaluated"
        yield "from the first step again), or take it out there. The other rules go on."


def _run_letter(detail: Detail) -> Iterator[str]:
    yield f"The run is {detail.get('state')}."
    yield ""
    yield f"Run:        {detail.get('location')}"
    if detail.get("job"):
        yield f"Job:        {detail['job']}"
    if detail.get("trouble"):
        yield f"Trouble:    {detail['trouble']}"
    if detail.get("state") == "Silent":
        yield ""
        yield "Nothing has been saved for longer than it should take. Is the training still running?"
    summary = detail.get("summary")
    if summary:
        yield f"Steps:      {summary.get('steps')}, the last is {summary.get('last_step')}"
        if summary.get("not_evaluated"):
            yield f"            {summary['not_evaluated']} of them could not be evaluated"
        yield ""
        for rule in summary.get("rules") or ():
            found = rule.get("last_found")
            when = f", last at step {found}" if found is not None else ""
            yield f"  {rule.get('status'):<14} {rule.get('name')}{when}"


def _action_letter(detail: Detail) -> Iterator[str]:
    done = "was done" if detail.get("done") else "was NOT done"
    yield f"The action {_action(detail.get('action') or {})} {done}."
    yield ""
    yield str(detail.get("message") or "")
    yield ""
    yield f"Run:        {detail.get('location')}"
    yield f"Rule:       {_rule_name(detail)}, at step {detail.get('step')}"
    yield f"Finding:    {detail.get('finding_id')}"


def _alarm_letter(detail: Detail) -> Iterator[str]:
    yield "The debugger itself needs to be looked at."
    yield ""
    yield f"Alarm:      {detail.get('alarmName')}"
    description = (detail.get("configuration") or {}).get("description")
    if description:
        yield f"Meaning:    {description}"
    yield f"Why:        {(detail.get('state') or {}).get('reason')}"
    yield ""
    yield "What to do next: look at the stack's dashboard, and at the logs of its functions."


def _any_letter(detail: Detail) -> Iterator[str]:
    for key, value in detail.items():
        yield f"{key}: {value}"


_LETTERS: Mapping[str, Callable[[Detail], Iterator[str]]] = {
    detail_types.CONDITION_MET: _finding_letter,
    detail_types.ISSUE_RESOLVED: _resolved_letter,
    detail_types.STATUS_CHANGE: _status_letter,
    detail_types.RUN_STATE_CHANGE: _run_letter,
    detail_types.ACTION_OUTCOME: _action_letter,
    ALARM: _alarm_letter,
}


# Words


def _evidence(finding: Mapping[str, Any]) -> str:
    """`gradient/fc2_weight: mean of |x| is 3.1e-09, the limit is 1e-07 at step 400`."""
    message = str(finding.get("message") or "").strip()
    if not message:
        message = str(finding.get("tensor") or "the run")
        if finding.get("value") is not None:
            message += f": {finding.get('statistic') or 'value'} is {number(finding['value'])}"
        if finding.get("threshold") is not None:
            message += f", the limit is {number(finding['threshold'])}"
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
    """What the rule is called here; its class as well, if that is another name."""
    rule = str(detail.get("rule") or "")
    name = str((detail.get("configuration") or {}).get("name") or rule)
    return name if name == rule else f"{name} ({rule})"


def _run_name(detail: Detail) -> str:
    """The job, or else the last two parts of the run's place: enough to know it by."""
    return str(detail.get("job") or "/".join(str(detail.get("run") or "").split("/")[-2:]))


def _parameters(detail: Detail) -> str:
    given = (detail.get("configuration") or {}).get("parameters") or {}
    return f" ({', '.join(f'{key}={value}' for key, value in given.items())})" if given else ""


def _mode(detail: Detail) -> str:
    mode = detail.get("mode")
    if not mode or mode == "GLOBAL":
        return ""
    return (
        f" (step {detail['mode_step']} of {mode})"
        if detail.get("mode_step") is not None
        else f" ({mode})"
    )


def _action(action: Mapping[str, Any]) -> str:
    name = str(action.get("name") or "")
    to = action.get("endpoint")
    return {STOP_TRAINING: "stop the training"}.get(name, f"{name} to {to}" if to else name)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _read(text: Any) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None


def _in_ascii(text: str, longest: int) -> str:
    plain = unicodedata.normalize("NFKD", text.replace("…", "..."))
    known = plain.encode("ascii", "replace").decode()
    one_line = " ".join("".join(c if c.isprintable() else " " for c in known).split())
    return one_line if len(one_line) <= longest else f"{one_line[: longest - 3]}..."


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
