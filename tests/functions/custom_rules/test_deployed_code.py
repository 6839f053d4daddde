"""The code of a custom rule: deployed, removed, changed or from elsewhere."""

from __future__ import annotations

from tests.functions.custom_rules.watched import COUNTS, Watched, invoking


def test_a_rule_deployed_in_a_function_of_its_own_is_run_from_its_file(tmp_path):
    watched = Watched(tmp_path)
    file = tmp_path / "counts.py"
    file.write_text("from smdebug.rules import Finding, Rule\n" + COUNTS)
    watched.small.settings.custom_functions["Counts"] = "function-of-counts"
    watched.small.deployed["function-of-counts"] = file
    watched.want({"name": "mine", "rule": "Counts", "parameters": {"limit": "1"}})
    watched.save(0, 1)
    watched.settle()
    assert watched.found == [1]
    assert watched.rule.source_digest == ""


def test_the_error_for_a_removed_deployed_rule_names_the_remedy(tmp_path):
    watched = Watched(tmp_path)
    watched.small.settings.custom_functions["Counts"] = "function-of-counts"
    watched.want({"name": "mine", "rule": "Counts", "parameters": {"limit": "1"}})
    watched.small.deliver()
    del watched.small.settings.custom_functions["Counts"]
    watched.save(0, 1)
    watched.settle()
    assert watched.status == "Error"
    assert "is no longer deployed: put its file back" in watched.rule.reason
    assert watched.group.cursor == 1


def test_code_that_changes_during_a_run_is_refused(tmp_path):
    watched = Watched(tmp_path, parameters={"limit": 100})
    watched.save(0)
    watched.settle()
    pinned = watched.rule.source_digest
    watched.put_source(COUNTS + "\n# changed\n")
    watched.save(1)
    watched.settle()
    assert watched.status == "Error"
    assert f"(sha256 {pinned[:12]}… became" in watched.rule.reason
    assert "upload changed rules under another key" in watched.rule.reason


def test_code_from_elsewhere_is_not_run(tmp_path):
    watched = Watched(tmp_path, invoking("return True"), "Mine", source="s3://elsewhere/rule.py")
    watched.save(0)
    watched.settle()
    assert watched.status == "Error"
    assert "this run may use s3://runs/rule-sources/" in watched.rule.reason
    assert watched.group.cursor == 0
    assert watched.small.lender.policies == {}
