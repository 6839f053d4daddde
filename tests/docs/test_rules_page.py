from __future__ import annotations

import re
from pathlib import Path

from tests.rules.made_runs import made_run

from smdebug_rules.catalog import CATALOG

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")


def test_the_blocks_of_the_page_run_one_after_the_other(tmp_path, capsys):
    made_run({step: {"loss": [1.0], "dense_weight": [2.0]} for step in range(4)}, tmp_path)
    names = {"run_path": str(tmp_path)}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/rules.md", "exec"), names)
    said = capsys.readouterr().out
    assert "The run has ended, and the rule has seen all of it." in said
    assert "0 loss: mean is 1, the limit is 0.5" in said
    assert names["later"].times == 2


def test_the_page_has_a_row_for_every_built_in_rule():
    rows = re.findall(r"^\| (\w+) \| (?!fires)", PAGE, flags=re.MULTILINE)
    assert rows == list(CATALOG)
