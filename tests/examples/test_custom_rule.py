"""The story of the original's notebook on custom rules, from the rule's file to the alert."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_custom_rule_is_uploaded_finds_what_it_looks_for_and_somebody_is_told():
    path = os.pathsep.join([str(ROOT / "layers/smdebug_core/python"), str(ROOT / "rules")])
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/writing_custom_rules/story.py")],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "SMDEBUG_LOG_LEVEL": "error"},
    )
    sentence = (
        "RuleEvaluationConditionMet: Evaluation of the rule CustomGradientRule at step 50 "
        "resulted in the condition being met"
    )
    assert done.stdout.splitlines() == [
        f"CustomGradientRule: IssuesFound, {sentence}",
        f"step 50: {sentence}",
        "In the inbox: CustomGradientRule found something at step 50",
        "The report: report/report.html below the run",
    ]
