"""What a record keeps of a rule's evidence suffices to fold it as the notebook does."""

import json

from functions.decisions.diagnoses import diagnosis_of, kept, restored
from smdebug.diagnosis import Evidence, evidence_of, fold
from smdebug.rules.findings import Finding


def evidence(rule, step, cause, since):
    return evidence_of(rule, [(step, [Finding(None, cause=cause, message=cause, since=since).to_dict()])])


def test_a_trend_is_folded_from_a_record_as_in_the_notebook():
    stuck = evidence("StuckLoss", 150, "not learning", 0)
    vanished = evidence("LearningRate", 30, "learning rate", 14)
    remembered = [
        item
        for rule, found in (("StuckLoss", stuck), ("LearningRate", vanished))
        for item in restored(rule, kept(found), 150, advice={}, docs="")
    ]
    for issues in (fold([*stuck, *vanished]), fold(remembered)):
        assert [issue.cause for issue in issues] == ["learning rate"]
        assert [symptom.cause for symptom in issues[0].symptoms] == ["not learning"]


def test_a_record_of_the_longest_texts_stays_small():
    long, many = "x" * 5000, ("y" * 5000,) * 50
    finding = Finding(long, cause="spike", message=long, title=long, why=many, advice=many).to_dict()
    record = kept(evidence_of("Rule", [(5, [finding] * 50)]))
    assert len(json.dumps(record)) < 6000
    assert len(json.dumps(diagnosis_of("Rule", evidence_of("Rule", [(5, [finding])]), []))) < 6000


def test_a_record_without_texts_of_the_case_has_those_of_its_cause_and_rule():
    old = [{"cause": "spike", "what": "w", "since": 3, "found": 4, "places": ["loss"], "workers": []}]
    (found,) = restored("Rule", old, 9, advice={"spike": ("In general.",)}, docs="page")
    assert found == Evidence(
        "spike", "Rule", "w", 3, 9, 0, 4, places=("loss",), advice=("In general.",), docs="page"
    )


def test_a_record_has_all_that_an_earlier_version_reads():
    (record,) = kept(evidence("Rule", 5, "spike", 3))
    assert {"cause", "what", "since", "found", "places", "workers"} <= set(record)
