"""A report has the exit code of an evaluation: it has passed only if a rule looked, and none failed."""

import numpy as np
import pytest

import smdebug

FAILS = """
from smdebug.rules import Rule

class Fails(Rule):
    def invoke_at_step(self, step):
        raise ValueError("broken")
"""


def saved(place, losses, **options):
    with smdebug.Hook(str(place), **options) as hook:
        for loss in losses:
            with hook.step():
                if loss is not None:
                    hook.record("loss", np.float32(loss))
    return place


@pytest.mark.parametrize(
    ("losses", "code"), [([1.0, 0.9, 0.8], 0), ([1.0, 0.9, np.nan], 1), ([None, None], 3)], ids=str
)
def test_a_report_has_the_exit_code_of_an_evaluation(ask, tmp_path, losses, code):
    chosen = {"include_collections": ["losses"], "save_config": smdebug.SaveConfig(save_interval=1)}
    run = saved(tmp_path / "run", losses, **chosen)
    assert ask("evaluate", run).code == code
    assert ask("report", run, "-o", tmp_path / "page.html").code == code
    assert ask("report", run, "--no-rules", "-o", tmp_path / "page.html").code == 0
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_a_rule_that_fails_is_no_finding(ask, tmp_path):
    run = saved(tmp_path / "run", [1.0, 0.9, 0.8])
    (tmp_path / "fails.py").write_text(FAILS)
    chosen = ("--rule", "Fails", "--rule-file", tmp_path / "fails.py")
    assert ask("evaluate", run, *chosen, "--no-default-rules").code == 3
    assert ask("report", run, *chosen, "-o", tmp_path / "page.html").code == 3
