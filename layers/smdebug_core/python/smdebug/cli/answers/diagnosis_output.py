"""Print a diagnosis: the problems of a run, then the rules that passed, failed, or had nothing to check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from smdebug.cli.answers.colours import bad, faint, good, strong
from smdebug.cli.answers.output import print_line, terminal_width, wrapped

if TYPE_CHECKING:
    from smdebug.diagnosis import Issue
    from smdebug.runs.evaluation.diagnosing import Diagnosis

_LABEL = 10  # columns of "Symptoms  "
_INDENT = 2
_MOST_NAMED = 6  # rules in a line; more of them are counted
_MOST_REASONS = 3  # why rules were not checked; more of them are folded into one line


def print_issues(issues: Sequence[Issue]) -> None:
    """Print each problem: its cause, the evidence, its symptoms, what to try."""
    for issue in issues:
        for line in issue_lines(issue):
            print_line(line)
        print_line()


def issue_lines(issue: Issue, *, run: str = "") -> list[str]:
    """Return a problem as styled lines that fit the terminal; the first names the run, if it is given."""
    from smdebug.diagnosis.wording import headline, parts, sentence

    lines = [bad("✗ ") + (f"{run}: " if run else "") + strong(headline(issue))]
    lines += wrapped(sentence(issue.what), indent=_INDENT)
    width = terminal_width()
    for label, texts in parts(issue, None if width is None else width - _INDENT - _LABEL):
        for at, text in enumerate(texts):
            first, *rest = wrapped(text, indent=_INDENT + _LABEL)
            shown = faint(f"{label if at == 0 else '':<{_LABEL}}")
            lines += [" " * _INDENT + shown + first.lstrip(), *rest]
    return lines


def print_others(
    found: Diagnosis, *, in_short: bool, reasons: bool = False, is_partial: bool = False
) -> None:
    """Print the rules without findings; `in_short` those that passed in one line.

    With `reasons`, say why each rule was not checked, however many there are. Of a run that `is_partial`, say
    that the others passed at the steps that are there.
    """
    for result in found.results:
        if result.error:
            print_line(f"{strong('!')} {result.summary()}")
        elif result.name in found.passed and not in_short:
            print_line(f"{good('✓')} {result.summary()}")
        elif result.not_checked and not in_short:
            print_line(f"{faint('–')} {result.summary()}")
    if in_short:
        shown_by = None if reasons else "--reasons shows which."
        print_in_short(found.passed, found.not_checked, is_partial=is_partial, shown_by=shown_by)
    if found.sees_more_with:
        _print_marked(faint("–"), found.sees_more_with)


def print_in_short(
    passed: Sequence[str],
    not_checked: dict[str, str],
    *,
    is_partial: bool = False,
    shown_by: str | None = None,
) -> None:
    """Print the rules that passed in a line, and those that were not checked in one for each reason.

    Of a run that `is_partial`, the rules passed at the steps that are there. Many rules are counted, and many
    reasons become one line, if `shown_by` says where they are shown.
    """
    from smdebug.runs.evaluation.diagnosing import not_checked_in_words, passed_in_words

    if passed:
        mark = faint("✓") if is_partial else good("✓")
        are_named = shown_by is None or len(passed) <= _MOST_NAMED
        _print_marked(mark, passed_in_words(passed, is_partial=is_partial, are_named=are_named))
    reasons = not_checked_in_words(not_checked)
    if shown_by and len(reasons) > _MOST_REASONS:
        named = f": {', '.join(not_checked)}" if len(not_checked) <= _MOST_NAMED else ""
        text = (
            f"{len(not_checked)} rules not checked{named}. The run lacks the data that they check; {shown_by}"
        )
        _print_marked(faint("–"), text)
        return
    for text in reasons:
        _print_marked(faint("–"), text)


def _print_marked(mark: str, text: str) -> None:
    first, *rest = wrapped(text, indent=_INDENT)
    print_line(f"{mark} {first.lstrip()}")
    for line in rest:
        print_line(line)
