"""Scripts that know nothing of a hook, with rules evaluated beside them."""

import json

import pytest

from tests.frameworks.pytorch.test_unchanged import SCRIPT
from tests.frameworks.scripts import python

NAN = "criterion = lambda *batch: nn.functional.cross_entropy(*batch) * float('nan')"


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.replace("LOSS", NAN))
    return path


@pytest.mark.parametrize("chosen", ["", "--collections weights --save-interval 1"], ids=["plan", "chosen"])
def test_rules_are_evaluated_beside_a_script_and_a_tool_gets_what_they_find(script, chosen):
    words = f"--out-dir run --sink jsonl:found.jsonl --evaluate {chosen} train.py --epochs 2".split()
    done = python("-m", "smdebug.run", *words, cwd=script.parent)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (script.parent / "found.jsonl").read_text().splitlines()]
    assert [line["run"] for line in lines[:1]] == ["run"]
    (issue,) = [line for line in lines if line["record"] == "issue" and line["state"] == "opened"]
    assert "NaN" in issue["title"]
    assert issue["title"] in done.stderr


def test_what_cannot_be_evaluated_is_refused_before_the_script_runs(script):
    for words, said in (
        (("--sink", "mlfow"), "mlflow"),
        (("--alert", "me"), "An alert needs an address"),
        (("--rule-file", "none.py"), "there is no file none.py"),
    ):
        done = python("-m", "smdebug.run", "--out-dir", "run", *words, script, cwd=script.parent)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
    assert not (script.parent / "run").exists()
