from __future__ import annotations

import json

import numpy as np
import pytest

from smdebug.exceptions import SMDebugTypeError
from smdebug.rules.findings import Finding, as_findings


def test_a_finding_is_text_with_its_evidence():
    finding = Finding("gradient/w", "mean of |x|", np.float32(1.5e-9), 1e-7, worker="worker_1")
    assert str(finding) == ("gradient/w (worker worker_1): mean of |x| 1.5e-09 (limit 1e-07)")
    assert str(Finding("w", message="said otherwise")) == "said otherwise"
    assert str(Finding("w")) == "w"


def test_a_finding_is_strict_json_whatever_numpy_put_into_it():
    finding = Finding(
        "w", "max", np.float32("inf"), np.int64(3), details={"nan": float("nan"), "a": np.arange(2)}
    )
    payload = json.loads(json.dumps(finding.to_dict(), allow_nan=False))
    assert payload["value"] == "Infinity"
    assert payload["threshold"] == 3
    assert payload["details"] == {"nan": "NaN", "a": [0, 1]}
    assert "worker" not in payload


def test_strings_and_mappings_become_findings():
    found = as_findings(
        ["gradient/w", "all is lost", {"tensor": "b", "value": 2, "layer": 7}, Finding("c")],
        names_a_tensor={"gradient/w"}.__contains__,
    )
    assert found == [
        Finding(tensor="gradient/w"),
        Finding(message="all is lost"),
        Finding(tensor="b", value=2, details={"layer": 7}),
        Finding("c"),
    ]


@pytest.mark.parametrize("evidence", ["a sentence", {"tensor": "w"}, Finding("w")])
def test_a_single_finding_needs_no_list(evidence):
    assert len(as_findings(evidence)) == 1


def test_no_findings_are_none():
    assert as_findings(None) == as_findings([]) == []


@pytest.mark.parametrize("nonsense", [7, [7], [None]])
def test_what_is_not_a_finding_is_refused(nonsense):
    with pytest.raises(SMDebugTypeError, match=r"7|None"):
        as_findings(nonsense)


def test_a_finding_says_its_cause_and_since_when_if_it_knows():
    finding = Finding("w", cause="learning rate", since=np.int64(720))
    assert finding.to_dict() == {
        "tensor": "w",
        "message": "w",
        "cause": "learning rate",
        "since": 720,
    }
    assert as_findings({"tensor": "w", "cause": "learning rate", "since": 720}) == [
        Finding("w", cause="learning rate", since=720)
    ]
    assert {"cause", "since"}.isdisjoint(Finding("w").to_dict())


def test_a_finding_says_what_convinces_and_what_to_try_in_this_case():
    (finding,) = as_findings(
        [{"tensor": "loss", "title": "It jumps", "why": "9 after 2", "advice": ["A.", "B."]}]
    )
    assert (finding.title, finding.why, finding.advice) == ("It jumps", ("9 after 2",), ("A.", "B."))
    assert finding.to_dict() == {
        "tensor": "loss",
        "message": str(finding),
        "title": "It jumps",
        "why": ["9 after 2"],
        "advice": ["A.", "B."],
    }
    assert not {"title", "why", "advice"} & set(Finding("loss").to_dict())
