"""A report in words, for readers without a script."""

from __future__ import annotations

import pytest

from smdebug.ui.embedding.plain import headline, plain_text


def rules(**counts):
    return [
        {"state": state.replace("_", " "), "sentence": f"{state} {number}"}
        for state, count in counts.items()
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "no rules evaluated"),
        ({"waiting": 2}, "nothing was checked"),
        ({"not_checked": 1}, "nothing was checked"),
        ({"passed": 1}, "1 rule passed"),
        ({"passed": 3}, "3 rules passed"),
        ({"passed": 3, "not_checked": 1, "waiting": 1}, "3 rules passed, 2 not checked"),
        ({"passed": 3, "failed": 1}, "1 rule could not be evaluated"),
        ({"failed": 2}, "2 rules could not be evaluated"),
        ({"passed": 3, "failed": 1, "found": 1}, "1 of 5 rules detected a problem"),
        ({"found": 1}, "1 of 1 rule detected a problem"),
    ],
)
def test_all_verdicts_fit_into_a_few_words(given, words):
    assert headline(rules(**given)) == words


RUN = {
    "name": "<run>",
    "path": "/runs/&",
    "state": "ended",
    "rules": rules(waiting=1, passed=1, found=1, failed=1, not_checked=1),
    "issues": [{"headline": "It <broke>", "sentence": "At step 3.", "parts": [("why", ["a", "b"])]}],
    "notes": ["a note"],
    "damaged": [("step 4", "cut")],
}


def test_a_report_in_words_has_the_problems_first_and_every_name_escaped():
    assert plain_text(RUN, {"facts": [["steps", "<5>"]]}).splitlines() == [
        "<h1>&lt;run&gt;</h1>",
        "<p>/runs/&amp;: ended</p>",
        "<dl><dt>steps</dt><dd>&lt;5&gt;</dd></dl>",
        "<h2>1 of 5 rules detected a problem</h2>",
        "<h3>✗ It &lt;broke&gt;</h3><p>At step 3.</p>",
        "<dl><dt>why</dt><dd>a; b</dd></dl>",
        "<ul><li>✗ found 0</li><li>! failed 0</li><li>✓ passed 0</li><li>– not_checked 0</li>"
        "<li>– waiting 0</li></ul>",
        "<ul><li>a note</li><li>step 4: cut</li></ul>",
    ]


def test_what_is_empty_is_left_out():
    empty = {**RUN, "rules": [], "issues": [], "notes": [], "damaged": []}
    assert plain_text(empty, {"facts": []}).splitlines()[2:] == ["<h2>No rules evaluated</h2>"]
