"""Whether rules can be created with the values that they are given, before there is a run to judge."""

from __future__ import annotations

from typing import Any, cast

from smdebug.backtesting.question import Question
from smdebug.exceptions import SMDebugError
from smdebug.rules.construction import accepted_parameters
from smdebug.runs.evaluation.rule_steps import construct_class, rule_class
from smdebug.trials import Trial


class _AskedTheRun(BaseException):
    """The constructor asked the run for something: only a run can say whether the values fit."""


class _NoRun:
    """Stands for a run that is not opened; it can be kept, but answers nothing."""

    def __getattr__(self, name: str) -> Any:
        raise _AskedTheRun(name)


def refusal_of(question: Question) -> str:
    """Return why a rule with parameters cannot be created on any run; empty if it may be on some."""
    for entry in question.rules:
        if isinstance(entry, str) or not entry["parameters"]:
            continue
        for file in dict.fromkeys((question.file, question.against or question.file)):
            kind = rule_class(entry["rule"], file)
            try:
                construct_class(kind, cast(Trial, _NoRun()), entry["parameters"])
            except SMDebugError as error:
                takes = ", ".join(accepted_parameters(kind).settable)
                return f"{error}. {kind.__name__} takes {takes or 'no parameter'}"
            except _AskedTheRun:
                continue
    return ""
