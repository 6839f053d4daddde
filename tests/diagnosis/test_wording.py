"""An issue in words: headline, parts, one line, and the summary of all."""

from __future__ import annotations

import pytest

from smdebug.diagnosis import Issue, Symptom, as_text
from smdebug.diagnosis.html import issue_html
from smdebug.diagnosis.wording import (
    Part,
    headline,
    in_a_line,
    named,
    parts,
    sentence,
    summary,
    symptom_in_words,
    title_of,
)

FULL = Issue(
    cause="spike",
    what="the loss jumped",
    since=3,
    last=9,
    where=("loss", "fc.weight"),
    workers=("worker_0", "worker_1"),
    why=("loss 9 (limit 2)", "all others are below 1"),
    advice=("Clip gradients.", "Lower the learning rate."),
    rules=("LossSpike", "UpdateSpike"),
    docs="https://example.org/rules.html#lossspike",
    symptoms=(Symptom("not learning", "the loss is stuck.", 4, 4, because="it jumped"),),
)


def test_an_issue_has_its_parts_in_one_order():
    assert parts(FULL) == [
        Part("Where", ("loss, fc.weight; workers worker_0, worker_1; steps 3 to 9",)),
        Part("Why", ("Loss 9 (limit 2). All others are below 1.",)),
        Part("Symptoms", ("The model does not learn, at step 4: the loss is stuck (it jumped)",)),
        Part("Try", ("Clip gradients.", "Lower the learning rate.")),
        Part("Rule", ("LossSpike, UpdateSpike",)),
        Part("More", ("https://example.org/rules.html#lossspike",)),
    ]


def test_an_issue_without_facts_has_no_parts_and_its_title_names_the_rules():
    bare = Issue("", "It fired", 5, 5, workers=("worker_0",), rules=("mine", "other"))
    assert parts(bare) == []
    assert as_text(bare) == ["Mine, other, at step 5", "    It fired."]


@pytest.mark.parametrize(
    ("cause", "title"),
    [
        ("spike", "The loss or an input jumps"),
        ("my own cause", "My own cause"),
        ("", "LossSpike, UpdateSpike"),
    ],
)
def test_a_title_is_that_of_the_cause_or_names_the_rules(cause, title):
    assert title_of(Issue(cause, "", 0, 0, rules=("LossSpike", "UpdateSpike"))) == title


def test_a_title_of_the_case_comes_before_that_of_the_cause():
    assert title_of(Issue("spike", "", 0, 0, title="an input jumps")) == "An input jumps"
    assert title_of(Symptom("spike", "", 0, 0, title="An input jumps")) == "An input jumps"


@pytest.mark.parametrize(("last", "span"), [(3, "at step 3"), (4, "since step 3")])
def test_a_headline_has_the_onset(last, span):
    assert headline(Issue("spike", "", 3, last)) == f"The loss or an input jumps, {span}"


@pytest.mark.parametrize(("symptoms", "more"), [(0, ""), (1, " (1 symptom)"), (2, " (2 symptoms)")])
def test_an_issue_in_a_line_counts_its_symptoms(symptoms, more):
    issue = Issue("spike", "it jumped.", 3, 3, symptoms=(Symptom("scaler", "x", 3, 3),) * symptoms)
    assert in_a_line(issue) == f"The loss or an input jumps, at step 3: it jumped{more}"


def test_six_symptoms_are_shown_and_the_rest_is_counted():
    def shown(count):
        symptoms = tuple(Symptom("scaler", f"s{number}", 1, 1) for number in range(count))
        return parts(Issue("spike", "it", 1, 1, symptoms=symptoms))[0].texts

    assert len(shown(6)) == 6
    assert shown(6)[-1] == "The loss scale collapses, at step 1: s5"
    assert shown(7) == (*shown(6), "and 1 more")
    assert shown(9) == (*shown(6), "and 3 more")


@pytest.mark.parametrize(
    ("width", "more"),
    [
        (None, FULL.docs),
        (len(FULL.docs), FULL.docs),
        (len(FULL.docs) - 1, "smdebug rules LossSpike"),
    ],
)
def test_the_command_replaces_an_address_that_does_not_fit(width, more):
    assert parts(FULL, width)[-1] == Part("More", (more,))
    assert as_text(FULL, width=width)[-1] == f"    More      {more}"


def test_the_command_names_what_the_address_names_if_it_is_none_of_the_rules():
    assert parts(Issue("", "it", 1, 1, docs="a/b#c#reading"), 5)[-1].texts == ("smdebug rules reading",)


def test_the_text_has_one_label_for_each_part():
    assert as_text(FULL, indent="> ") == [
        "The loss or an input jumps, since step 3",
        "> The loss jumped.",
        "> Where     loss, fc.weight; workers worker_0, worker_1; steps 3 to 9",
        "> Why       Loss 9 (limit 2). All others are below 1.",
        "> Symptoms  The model does not learn, at step 4: the loss is stuck (it jumped)",
        "> Try       Clip gradients.",
        ">           Lower the learning rate.",
        "> Rule      LossSpike, UpdateSpike",
        "> More      https://example.org/rules.html#lossspike",
    ]


def test_a_symptom_without_a_reason_has_no_brackets():
    assert symptom_in_words(Symptom("", "it fired.", 1, 2, rules=("mine",))) == "Mine, since step 1: it fired"


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "No problem detected."),
        (1, "1 problem detected: the loss or an input jumps since step 0."),
        (3, "3 problems detected: {} since step 0, {} since step 1, {} since step 2."),
        (4, "4 problems detected: {} since step 0, {} since step 1, {} since step 2 and 1 more."),
        (6, "6 problems detected: {} since step 0, {} since step 1, {} since step 2 and 3 more."),
    ],
)
def test_a_summary_names_three_issues(count, said):
    issues = [Issue("spike", "", number, number) for number in range(count)]
    assert summary(issues) == said.replace("{}", "the loss or an input jumps")


@pytest.mark.parametrize(
    ("title", "within"),
    [
        ("The loss is NaN", "the loss is NaN"),
        ("A layer outputs only zeros", "a layer outputs only zeros"),
        ("NaN in a gradient", "NaN in a gradient"),
        ("LoRA is not trained", "LoRA is not trained"),
    ],
)
def test_names_within_a_summary_keep_their_letters(title, within):
    issue = Issue(cause="own", what="x", since=3, last=3, title=title)
    assert summary([issue]) == f"1 problem detected: {within} since step 3."


@pytest.mark.parametrize(
    ("names", "said"),
    [("", ""), ("abcde", "a, b, c, d, e"), ("abcdef", "a, b, c, d, e and 1 more")],
)
def test_five_names_are_shown(names, said):
    assert named(names) == said
    assert named("abcd", most=2) == "a, b and 2 more"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("loss is 3", "Loss is 3."),
        ("fc1.weight is large", "fc1.weight is large."),
        ("LossSpike fired", "LossSpike fired."),
        ("done!", "done!"),
        ("is it?", "Is it?"),
        ("it is.", "It is."),
        ("", ""),
    ],
)
def test_a_sentence_has_a_capital_and_a_full_stop(text, said):
    assert sentence(text) == said


def test_a_notebook_shows_the_same_parts_escaped():
    issue = Issue("<b>", "a < b", 1, 1, advice=("<i>", "&"), docs="https://example.org/?a=1&b=2")
    page = issue_html(issue)
    assert page == issue._repr_html_()
    assert page.startswith("<p><b>✗ &lt;b&gt;, at step 1</b><br>A &lt; b.</p><table><tbody><tr><th ")
    assert ">Try</th>" in page
    assert ">&lt;i&gt;<br>&amp;</td>" in page
    assert (
        '><a href="https://example.org/?a=1&amp;b=2" target="_blank" rel="noreferrer">'
        "https://example.org/?a=1&amp;b=2</a></td>" in page
    )


def test_a_notebook_links_only_to_https():
    page = issue_html(
        Issue("spike", "x", 1, 1, advice=("https://elsewhere.org",), docs="javascript:alert(1)")
    )
    assert "<a " not in page
    assert ">javascript:alert(1)</td>" in page
