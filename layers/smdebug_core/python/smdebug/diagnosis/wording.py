"""An issue in words, the same in the terminal, in the report, in emails and in events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from smdebug.amounts import counted
from smdebug.diagnosis.causes import TITLES
from smdebug.diagnosis.issues import Issue, Symptom

MOST_NAMED = 5  # places or workers
MOST_SYMPTOMS = 6
_INDENT = "    "


class Part(NamedTuple):
    """A labelled part of a diagnosis."""

    label: str
    texts: tuple[str, ...]


def headline(issue: Issue) -> str:
    """Return the title of the problem and its onset: `The learning rate is wrong, since step 720`."""
    return f"{title_of(issue)}, {_span(issue)}"


def in_a_line(issue: Issue) -> str:
    """Return the issue in one line: the cause, its onset, the fact, and the number of symptoms."""
    count = len(issue.symptoms)
    more = f" ({counted(count, 'symptom')})" if count else ""
    return f"{headline(issue)}: {issue.what.rstrip('.')}{more}"


def title_of(problem: Issue | Symptom) -> str:
    """Return the title of this case or of the cause, a custom rule's own cause, or else the rule's name."""
    text = problem.title or TITLES.get(problem.cause) or problem.cause or ", ".join(problem.rules)
    return text[:1].upper() + text[1:]


def parts(issue: Issue, width: int | None = None) -> list[Part]:
    """Return where, why, symptoms, what to try, where to resume and to read more; empty ones are left out.

    "Where" has the steps, too, if the problem was found at several.

    If the address of the page does not fit into `width` columns, the command that shows the same replaces it.
    """
    found = (
        Part("Where", _joined(named(issue.where), _workers(issue.workers), _steps(issue))),
        Part("Why", (" ".join(map(sentence, issue.why)),) if issue.why else ()),
        Part("Symptoms", _symptoms(issue.symptoms)),
        Part("Try", issue.advice),
        Part("Resume", _where_to_resume(issue)),
        Part("Rule", (", ".join(issue.rules),) if issue.cause else ()),
        Part("More", (_where_to_read_more(issue, width),) if issue.docs else ()),
    )
    return [part for part in found if part.texts]


def as_text(issue: Issue, *, indent: str = _INDENT, width: int | None = None) -> list[str]:
    """Return the issue as lines of text, the headline first; `width` is that of the column of texts."""
    lines = [headline(issue), indent + sentence(issue.what)]
    for label, texts in parts(issue, width):
        for at, text in enumerate(texts):
            lines.append(f"{indent}{label if at == 0 else '':<9} {text}")
    return lines


def _where_to_read_more(issue: Issue, width: int | None) -> str:
    if width is None or len(issue.docs) <= width:
        return issue.docs
    anchor = issue.docs.rpartition("#")[2]
    return f"smdebug rules {next((rule for rule in issue.rules if rule.lower() == anchor), anchor)}"


def symptom_in_words(symptom: Symptom) -> str:
    """Return a symptom in a sentence: what, since when, and why it follows from the cause."""
    because = f" ({symptom.because})" if symptom.because else ""
    return f"{title_of(symptom)}, {_span(symptom)}: {symptom.what.rstrip('.')}{because}"


def summary(issues: Sequence[Issue]) -> str:
    """Return all issues in a sentence."""
    if not issues:
        return "No problem detected."
    names = ", ".join(f"{_within(title_of(issue))} since step {issue.since}" for issue in issues[:3])
    more = f" and {len(issues) - 3} more" if len(issues) > 3 else ""
    return f"{counted(len(issues), 'problem')} detected: {names}{more}."


def named(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def sentence(text: str) -> str:
    """Return the text with a capital, unless it begins with a name, and a full stop."""
    first, _, _ = text.partition(" ")
    if first.isalpha() and first.islower():
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) or not text else f"{text}."


def _span(issue: Issue | Symptom) -> str:
    return f"since step {issue.since}" if issue.last != issue.since else f"at step {issue.since}"


def _steps(issue: Issue) -> str:
    return f"steps {issue.since} to {issue.last}" if issue.last != issue.since else ""


def _workers(workers: Sequence[str]) -> str:
    return "" if len(workers) < 2 else f"workers {named(workers)}"


def _joined(*texts: str) -> tuple[str, ...]:
    text = "; ".join(text for text in texts if text)
    return (text,) if text else ()


def _where_to_resume(issue: Issue) -> tuple[str, ...]:
    checkpoint = issue.resume_from
    if checkpoint is None:
        return ()
    when = "before the first step" if checkpoint.step < 0 else f"after step {checkpoint.step}"
    return (f"{checkpoint.path}, saved {when}, is the last checkpoint before the problem began.",)


def _symptoms(symptoms: Sequence[Symptom]) -> tuple[str, ...]:
    shown: Iterable[str] = map(symptom_in_words, symptoms[:MOST_SYMPTOMS])
    rest = len(symptoms) - MOST_SYMPTOMS
    return (*shown, *([f"and {rest} more"] if rest > 0 else []))


def _within(title: str) -> str:
    """Return a title within a sentence; NaN, KL and other names keep their letters."""
    word = title.partition(" ")[0]
    return title if word[1:] != word[1:].lower() else title[:1].lower() + title[1:]
