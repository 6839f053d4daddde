"""The steps at which a rule fires on a run, and its findings."""

from __future__ import annotations

from smdebug.exceptions import NoMoreData
from smdebug.rules.rule_invoker import evaluations


def findings_by_step(rule, start_step=0, end_step=None):
    """{step: findings} of the steps at which the rule fires."""
    found = {}
    try:
        for evaluation in evaluations(rule, start_step, end_step):
            if evaluation.met is not None:
                found.setdefault(evaluation.step, []).extend(evaluation.findings)
    except NoMoreData:
        pass
    return found


def fires_at(rule, start_step=0, end_step=None):
    """The steps at which the rule fires."""
    return list(findings_by_step(rule, start_step, end_step))


def found_data_at(rule, step):
    """Return whether the rule had data to evaluate at `step`."""
    list(evaluations(rule, step, step + 1))
    return rule.looked
