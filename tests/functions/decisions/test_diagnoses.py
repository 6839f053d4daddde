"""What a record keeps of a rule's evidence suffices to fold it as the notebook does."""

from functions.decisions.diagnoses import kept, restored
from smdebug.diagnosis import evidence_of, fold
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
