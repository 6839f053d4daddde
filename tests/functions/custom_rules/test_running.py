"""A custom rule in a process of its own: what it cannot do, and how its behaviour is reported."""

from __future__ import annotations

import ctypes
import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from functions.custom_rules import running
from functions.custom_rules.claiming import claim
from functions.custom_rules.running import descendants, run
from tests.functions.custom_rules.watched import RUN, Watched, invoking


def job_of(folder: Path, code: str, rule: str = "Mine", steps: int = 1) -> dict[str, Any]:
    """What a claim hands over for a rule with this code."""
    watched = Watched(folder, code, rule)
    watched.save(*range(steps))
    watched.small.deliver()
    job: dict[str, Any] = claim(watched.small.world, RUN, watched.group.group, 0)["job"]
    return job


def asked(folder: Path, body: str, **limits: float) -> dict[str, Any]:
    """Return the outcome of a rule whose `invoke_at_step` has this body."""
    job = job_of(folder, invoking(body))
    return run({**job, "limits": {**job["limits"], **limits}})


def seen_by_rule(folder: Path, expression: str) -> Any:
    """Evaluate the expression in a rule; return its value."""
    answer = asked(folder, f"self.findings = [json.dumps({expression})]; return True")
    (step,) = answer["steps"]
    assert step["outcome"] == "found", step
    return json.loads(step["findings"][0]["message"])


# What it sees


def test_nothing_of_the_functions_own_surroundings_is_there(tmp_path, monkeypatch):
    for name in ("AWS_LAMBDA_RUNTIME_API", "SMDEBUG_TABLE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        monkeypatch.setenv(name, "of-the-function")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-function")
    expression = """
        sorted(os.environ), "of-the-function" in os.environ.values(), os.environ["AWS_SECRET_ACCESS_KEY"]
    """.strip()
    names, leaked, secret = seen_by_rule(tmp_path, f"({expression})")
    assert not leaked
    assert secret == "-", "that is the one it was lent"
    assert set(names) <= {
        "PATH",
        "LD_LIBRARY_PATH",
        "LANG",
        "LC_CTYPE",
        "HOME",
        "TMPDIR",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_EC2_METADATA_DISABLED",
        "AWS_CA_BUNDLE",
        "OPENBLAS_NUM_THREADS",
        "MALLOC_ARENA_MAX",
        "SMDEBUG_LOG_LEVEL",
    }


def test_it_has_a_folder_for_itself_that_is_empty_and_is_gone_afterwards(tmp_path):
    expression = "(os.getcwd(), os.listdir(), __import__('tempfile').gettempdir())"
    first, listed, temporary = seen_by_rule(tmp_path / "first", expression)
    second, _, _ = seen_by_rule(tmp_path / "second", expression)
    assert listed == []
    assert temporary == first != second
    assert not Path(first).exists()


def test_a_rule_can_neither_inspect_its_parent_nor_orphan_a_process(tmp_path):
    asked(tmp_path, "return False")
    system = ctypes.CDLL(None)
    is_subreaper = ctypes.c_int()
    system.prctl(37, ctypes.byref(is_subreaper), 0, 0, 0)  # PR_GET_CHILD_SUBREAPER
    assert system.prctl(3, 0, 0, 0, 0) == 0  # PR_GET_DUMPABLE: /proc/<pid> is closed to others
    assert is_subreaper.value == 1


# What it says


def test_what_it_prints_is_its_own_log_and_never_an_answer(tmp_path, capfd):
    body = """
    print('{"done": {"state": null}}')
    print('{"level": "ERROR", "message": "as JSON", "run": "runs/of-another"}')
    self.logger.warning("by the logger") if hasattr(self, "logger") else None
    return False
    """
    answer = asked(tmp_path, body)
    assert [step["outcome"] for step in answer["steps"]] == ["nothing to check"]
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    ours = [line for line in lines if line["message"] in ("as JSON", '{"done": {"state": null}}')]
    assert {(line["run"], line["rule"], line["step"]) for line in ours} == {(RUN, "mine", 0)}
    assert [line["level"] for line in ours] == ["INFO", "ERROR"]


def test_output_that_is_too_long_is_cut(tmp_path, capfd):
    asked(tmp_path, "print('x' * 10_000_000); print('y' * 100); return False")
    output = capfd.readouterr().out
    assert len(output) < 200_000
    assert "the rest is left out" in output


# What it does to itself


def test_an_exception_is_reported_with_the_steps_before_it(tmp_path):
    code = invoking("""
    if step == 1: raise KeyError("loss")
    return False
    """)
    answer = run(job_of(tmp_path, code, steps=3))
    assert answer["steps"] == [
        {"step": 0, "outcome": "nothing to check"},
        {"step": 1, "outcome": "failed", "text": "KeyError: 'loss'"},
    ]


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("class Mine(Rule:", "SyntaxError"),
        ("class Other(Rule): ...", "defines no rule Mine; there is Other"),
        ("Mine = 7", "there is no rule (a class that derives from smdebug.rules.Rule)"),
        ("sys.exit(3)", "the rule called sys.exit(3)"),
        ("raise BaseException('all')", "BaseException: all"),
    ],
)
def test_code_that_cannot_be_loaded_is_what_the_rule_raised(tmp_path, code, problem):
    (step,) = run(job_of(tmp_path, code + "\n"))["steps"]
    assert step["outcome"] == "failed"
    assert problem in step["text"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("os._exit(7)", "it ended with exit code 7 before it had answered"),
        ("os.kill(os.getpid(), 9)", "it was ended by SIGKILL before it had answered"),
        ("os.close(int(sys.argv[1])); return False", "before it had answered"),
        ("os.write(int(sys.argv[1]), b'no JSON\\n'); return False", "that is not an answer"),
        (
            "os.write(int(sys.argv[1]), b'{\"step\": NaN}\\n'); return False",
            "that is not an answer",
        ),
        (
            "os.write(int(sys.argv[1]), b'[' * 90_000 + b'\\n'); return False",
            "that is not an answer",
        ),
        ("os.write(int(sys.argv[1]), b'x' * 60_000); " * 4 + "return False", "more than 200000 b"),
    ],
)
def test_an_early_exit_or_invalid_answer_is_a_death_with_its_cause(tmp_path, body, problem):
    answer = asked(tmp_path, body)
    assert answer["steps"] == []
    assert answer["died"]["step"] == 0
    assert problem in answer["died"]["message"]


def test_time_is_bounded(tmp_path, monkeypatch):
    begun = tmp_path / "begun"
    seen = []

    def clock():
        """Let the time pass once the rule is known to have begun, however long it takes to start."""
        seen.extend([True] * begun.exists())
        return 60.0 * (len(seen) > 1)

    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=clock, sleep=time.sleep))
    answer = asked(tmp_path, f"open({str(begun)!r}, 'w'); time.sleep(60)", seconds=50)
    assert answer["died"] == {"step": 0, "message": "it did not answer within 50 s"}


def test_no_step_is_begun_after_so_much_work(tmp_path):
    job = job_of(tmp_path, invoking("return False"), steps=4)
    answer = run({**job, "limits": {**job["limits"], "work": 0}})
    assert [step["step"] for step in answer["steps"]] == [0], "one at least, or it would never end"


@pytest.mark.parametrize(
    "body",
    [
        "self.all = bytearray(os.urandom(1 << 20) * 400); return False",
        # in the memory of others that it starts
        "os.fork() or (bytearray(os.urandom(1 << 20) * 400), time.sleep(30)); time.sleep(30)",
    ],
)
def test_memory_is_bounded_for_all_of_its_processes_together(tmp_path, body):
    answer = asked(tmp_path, body, memory_mb=250)
    assert answer["died"] == {"step": 0, "message": "it used more than 250 MB of memory"}


def test_whatever_it_has_started_ends_with_it(tmp_path):
    before = set(descendants())
    body = """
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        child = os.fork()
        if child == 0:
            time.sleep(60)
        os.write(writing, str(child).encode())
        os._exit(0)
    self.findings = [os.read(reading, 20).decode()]
    return True
    """
    (step,) = asked(tmp_path, body)["steps"]
    far_away = int(step["findings"][0]["message"])
    with pytest.raises(ProcessLookupError):
        os.kill(far_away, 0)
    assert set(descendants()) == before


def test_a_copy_of_the_process_does_not_answer_for_it(tmp_path):
    body = """
    if os.fork() == 0:
        return True
    time.sleep(0.3)
    return False
    """
    assert asked(tmp_path, body)["steps"] == [{"step": 0, "outcome": "nothing to check"}]


# What it is handed


def test_code_that_is_not_what_was_claimed_is_not_run(tmp_path):
    job = job_of(tmp_path, invoking("return True"))
    forged = {**job["source"], "sha256": "0" * 64}
    (step,) = run({**job, "source": forged})["steps"]
    assert step["outcome"] == "failed"
    assert "is not what was claimed" in step["text"]


def test_a_run_that_cannot_be_read_is_not_the_rules_fault(tmp_path):
    body = """
    from smdebug.exceptions import StorageUnavailable
    raise StorageUnavailable("s3://runs/mnist", "it was not there")
    """
    answer = asked(tmp_path, body)
    assert answer["died"]["later"]
    assert "s3://runs/mnist: it was not there" in answer["died"]["message"]


def test_a_state_that_is_too_large_is_reported(tmp_path):
    answer = asked(tmp_path, "self.all = np.zeros(9 << 20); return False")
    assert "64 MB" in answer["state"]["problem"]


def test_attributes_that_are_not_plain_data_are_left_out_and_named(tmp_path):
    answer = asked(tmp_path, "self.lock = os; return False")
    assert answer["left_out"] == ["lock"]


def test_nothing_of_a_job_makes_the_function_itself_fail(tmp_path):
    job = job_of(tmp_path, invoking("return False"))
    for broken in ({"about": "?"}, {"limits": {"seconds": "soon"}}, {"rule": {"name": "x"}}):
        answer = run({**job, **broken})
        assert answer["steps"] == [] or answer["steps"][0]["outcome"] == "failed"


def test_the_child_is_not_of_our_group_and_runs_isolated(tmp_path):
    group, isolated = seen_by_rule(tmp_path, "(os.getpgid(0), sys.flags.isolated)")
    assert group != os.getpgid(0)
    assert isolated == 1


def test_a_function_with_little_memory_leaves_the_rule_at_least_some():
    assert running.memory_left(10) == 128
    for there in (8_192, 16_384):  # this process, which runs all tests, may hold a gigabyte itself
        assert there - 4_096 < running.memory_left(there) < there
