"""Events in words: the message says what happened, to which run, and what to do."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.decisions import alerts
from functions.decisions.detail_types import CONDITION_MET, DETAIL_TYPES, RUN_STATE_CHANGE
from functions.decisions.diagnoses import diagnosis_of, kept, restored
from functions.decisions.publishing import put_events_entries
from functions.decisions.rule_lifecycle import finish, judge
from functions.decisions.run_events import summary_of
from smdebug.diagnosis import evidence_of
from smdebug.rules.outcomes import NothingToCheck, Passed
from tests.functions.decisions.sample_events import (
    EVIDENCE,
    NOON,
    VANISHING,
    every_kind,
    moment,
    rule,
)

KINDS = every_kind()


def letter(kind):
    entry = KINDS[kind]
    (sent,) = put_events_entries({entry.id: entry.as_item()}, now=NOON + 2.7)
    return alerts.email(entry.detail_type, json.loads(sent["Detail"]))


def test_the_e_mail_about_a_finding_has_evidence_run_start_and_remedy():
    assert letter("found") == (
        """\
Rule fc-gradients (VanishingGradient) detected an issue.

Gradients vanish, at step 400
  gradient/fc2_weight: the mean of |gradient| is 3.1e-09, below 1e-07.
  Where     gradient/fc2_weight, gradient/fc1_weight
  Why       gradient/fc1_weight: the mean of |gradient| is 8.8e-08, below 1e-07.
  Symptoms  The model does not learn, at step 400: loss is 0.69 at step 400, unchanged from 0.69 (layers \
without a gradient do not learn)
  Try       Add residual connections or normalisation between the layers.
  Rule      fc-gradients
  More      https://github.com/smdebug-serverless/smdebug-serverless/blob/main/docs/rules.md\
#vanishinggradient

Found by this rule:
  gradient/fc2_weight: the mean of |gradient| is 3.1e-09, below 1e-07 at step 400
  gradient/fc1_weight: the mean of |gradient| is 8.8e-08, below 1e-07 at step 400

Run:        s3://my-bucket/mnist-1
Rule:       VanishingGradient (threshold=1e-07)
Step:       400 (step 400 of TRAIN)
Last good:  step 300
Alerted:    2.6 s after the step was saved

Action started: stop the training.
Action started: email to me@example.org.
What to do:
  inspect it:
    from smdebug.trials import create_trial
    trial = create_trial('s3://my-bucket/mnist-1')
    trial.tensor('gradient/fc2_weight').value(400)
  compare with step 300, or resume from a checkpoint of that step
  if this is not a problem: relax the rule in rules.json beside the run, or remove it there
"""
        f"Event id: {KINDS['found'].id}\n"
    )


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("resolved", "The issue was open from step 400, last found at step 400."),
        ("error", "at step 400: KeyError: 'fc2'"),
        ("error", "correct the rule in rules.json"),
        ("finished", "IssuesFound    fc-gradients, last at step 400"),
        ("silent", "Is the training still running?"),
        ("in trouble", "Problem:    s3://my-bucket/mnist-1/rules.json: it is not JSON"),
        ("action", "The action 'stop the training' was performed."),
        ("action", f"Finding:    {KINDS['found'].id}"),
    ],
)
def test_every_letter_has_the_essential_fact(kind, text):
    assert text in letter(kind)


def test_a_rule_that_had_nothing_to_check_has_not_passed_in_the_letter_about_the_end():
    missing = NothingToCheck("the run has a single worker")
    unchecked, _ = judge(rule(), VANISHING, missing, moment(300))
    silent, _ = judge(rule(), VANISHING, NothingToCheck(), moment(300))
    passed, _ = judge(rule(), VANISHING, Passed(), moment(300))
    ended = [
        (VANISHING, finish(each, VANISHING, moment(300), evaluated=1, unseen=0)[0])
        for each in (unchecked, silent, passed)
    ]
    summary = summary_of(ended, steps=1, last_step=300)
    text = alerts.email(RUN_STATE_CHANGE, {"state": "Finished", "summary": summary})
    assert text.splitlines()[-3:] == [
        "  not checked    fc-gradients: the run has a single worker",
        "  not checked    fc-gradients: no step held anything for this rule, so check which tensors are "
        "saved.",
        "  NoIssuesFound  fc-gradients",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_letter_names_the_run(kind):
    assert "s3://my-bucket/mnist-1" in letter(kind)


def test_a_subject_and_a_text_message_name_the_rule_and_the_run():
    entry = KINDS["found"]
    headline = "fc-gradients (VanishingGradient) detected an issue at step 400 of my-bucket/mnist-1"
    assert alerts.subject(entry.detail_type, entry.detail) == headline
    text = alerts.sms(entry.detail_type, entry.detail)
    assert text.startswith(f"{headline}. gradient/fc2_weight: the mean of |gradient| is")


def test_a_chat_gets_one_line():
    entry = KINDS["found"]
    assert alerts.line(entry.detail_type, entry.detail) == (
        "fc-gradients (VanishingGradient) detected an issue at step 400 of my-bucket/mnist-1 · "
        "gradient/fc2_weight: the mean of |gradient| is 3.1e-09, below 1e-07 at step 400 · "
        "and 1 more · s3://my-bucket/mnist-1"
    )
    assert entry.detail["text"] == alerts.line(entry.detail_type, entry.detail)


def test_a_finding_without_a_message_is_described_by_its_numbers():
    detail = {
        "evidence": {
            "count": 30,
            "worst": [{"tensor": "w", "statistic": "mean", "value": 1.5, "threshold": 1, "step": 4}],
            "rest": "s3://b/r/report/findings/1.finding",
        }
    }
    letter = alerts.email(CONDITION_MET, detail)
    assert "  w: mean is 1.5 (limit 1) at step 4\n" in letter
    assert "  … and 29 more, all in s3://b/r/report/findings/1.finding\n" in letter


def test_latency_is_measured_from_saving_or_else_from_uploading():
    times = {"saved": None, "uploaded": "2026-11-21T12:00:00.000Z"}
    evaluated = {"times": {**times, "evaluated": "2026-11-21T12:00:03.500Z", "published": None}}
    assert alerts.seconds_to_alert(evaluated) == 3.5
    assert alerts.seconds_to_alert({"times": times}) is None
    assert alerts.seconds_to_alert({}) is None


HOSTILE = st.text(max_size=300) | st.sampled_from(["a\nSubject: b", 'x"y\\', "\u202e", "🙂" * 200])


@given(
    st.sampled_from(DETAIL_TYPES),
    st.fixed_dictionaries(
        {},
        optional={
            "run": HOSTILE,
            "job": HOSTILE,
            "rule": HOSTILE,
            "reason": HOSTILE,
            "trouble": HOSTILE,
            "message": HOSTILE,
            "TrainingJobName": HOSTILE,
            "location": HOSTILE,
            "configuration": st.fixed_dictionaries({"name": HOSTILE}),
            "evidence": st.fixed_dictionaries(
                {
                    "count": st.integers(0, 50),
                    "worst": st.lists(
                        st.fixed_dictionaries({"message": HOSTILE, "tensor": HOSTILE}), max_size=3
                    ),
                }
            ),
        },
    ),
)
def test_whatever_an_event_holds_its_messages_can_be_sent(detail_type, detail):
    subject = alerts.subject(detail_type, detail)
    assert len(subject) <= 100
    assert subject.isascii()
    assert not subject or subject.isprintable()
    assert len(alerts.sms(detail_type, detail)) <= 140
    line = alerts.line(detail_type, detail)
    assert len(line) <= 1000
    # An input transformer puts it into JSON as it is.
    assert json.loads(f'{{"text": "{line}"}}') == {"text": line}
    assert alerts.email(detail_type, detail).endswith("\n")


def test_the_e_mail_about_a_symptom_says_of_what():
    own = evidence_of("loss", [(410, [{"cause": "not learning", "message": "loss does not fall"}])])
    diagnosis = diagnosis_of("loss", own, EVIDENCE)
    assert (diagnosis["role"], diagnosis["cause"]) == ("symptom", "vanishing gradient")
    detail = {**KINDS["found"].detail, "diagnosis": diagnosis}
    text = alerts.email(KINDS["found"].detail_type, detail)
    assert "It is probably a symptom of another problem:\nGradients vanish, at step 400" in text
    assert "Symptoms  The model does not learn, at step 410: loss does not fall" in text


def test_a_rule_that_explains_nothing_and_is_not_explained_has_its_own_diagnosis():
    own = evidence_of("mine", [(7, [{"message": "something is wrong"}])])
    diagnosis = diagnosis_of("mine", own, EVIDENCE)
    assert (diagnosis["role"], diagnosis["cause"], diagnosis["rules"]) == ("cause", "", ["mine"])
    assert diagnosis_of("mine", (), EVIDENCE) is None


def test_evidence_is_the_same_after_it_was_kept():
    of_case = [replace(EVIDENCE[0], title="The first layers learn nothing", advice=("Try this first.",))]
    (again,) = restored(
        "fc-gradients",
        json.loads(json.dumps(kept(of_case))),
        420,
        advice={"": ("In general.",)},
        docs=EVIDENCE[0].docs,
    )
    assert again == replace(of_case[0], last=420, steps=0)
