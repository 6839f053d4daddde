"""Log lines that can be searched by fields, and metrics for alarms."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from functions.telemetry import about_rule, log, log_problem, metrics
from smdebug.cli.commands import _quiet_library
from smdebug.logger import get_logger
from tests.functions.saver import Saver
from tests.functions.small_world import SmallWorld


def log_lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_line_names_the_run_and_what_happened(capsys):
    log("Evaluated", run="runs/mnist", step=3)
    (line,) = log_lines(capsys)
    assert line.pop("timestamp") > 1.7e9
    assert line == {"level": "INFO", "message": "Evaluated", "run": "runs/mnist", "step": 3}


def test_a_problem_is_logged_briefly_with_its_location(capsys):
    try:
        raise ValueError("x" * 10_000)
    except ValueError as problem:
        log_problem("It could not be read", problem, run="runs/mnist")
    (line,) = log_lines(capsys)
    assert line["level"] == "ERROR"
    assert line["problem"].startswith("ValueError: xxx")
    assert len(line["problem"]) == 2000
    assert len(line["trace"]) == 4000


def test_numbers_are_in_the_format_that_cloudwatch_takes_metrics_from(capsys):
    metrics({"RuleErrors": (1, "Count"), "OldestUnevaluatedStep": (2.5, "Seconds")})
    (line,) = log_lines(capsys)
    (declared,) = line["_aws"]["CloudWatchMetrics"]
    assert declared["Namespace"] == "smdebug"
    assert declared["Dimensions"] == [[]], "the alarms look at all runs together"
    assert {metric["Name"]: metric["Unit"] for metric in declared["Metrics"]} == {
        "RuleErrors": "Count",
        "OldestUnevaluatedStep": "Seconds",
    }
    assert (line["RuleErrors"], line["OldestUnevaluatedStep"]) == ([1.0], [2.5])


def test_log_lines_of_a_rule_name_the_run_the_rule_and_the_step(capsys):
    logger = get_logger()
    handlers, level = logger.handlers, logger.level
    try:
        with about_rule("runs/mnist", "mine", 3, "debug"):
            logger.debug("seen %d", 7)
        logger.debug("the logger's own level is higher")
    finally:
        logger.handlers = handlers
    assert logger.level == level
    (line,) = log_lines(capsys)
    assert line["location"].startswith("test_telemetry.py:")
    shown = {key: line[key] for key in ("level", "message", "run", "rule", "step")}
    assert shown == {
        "level": "DEBUG",
        "message": "seen 7",
        "run": "runs/mnist",
        "rule": "mine",
        "step": 3,
    }


def test_who_measures_nothing_loads_nothing_for_it():
    script = "import sys, functions.telemetry; print('aws_lambda_powertools' in sys.modules)"
    printed = subprocess.check_output(
        [sys.executable, "-c", script], text=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert printed == "False\n"


def ages(capsys) -> list[float]:
    lines = [line for line in log_lines(capsys) if "OldestUnevaluatedStep" in line]
    return [line["OldestUnevaluatedStep"][0] for line in lines if "MissedNotifications" in line]


def test_every_sweep_reports_the_age_of_the_oldest_step_also_when_none_waits(capsys):
    """Missing reports of that age raise the alarm."""
    small = SmallWorld()
    small.sweep()
    assert ages(capsys) == [0.0], "there are no runs"
    small.place().write("rules.json", b'{"version": 1, "default_rules": false, "rules": ["ExplodingTensor"]}')
    saver = Saver(small.place()).begin()
    saver.save(0)
    small.deliver()  # recorded, and not evaluated: the workflow has not started
    small.clock.time += 1000.0
    small.sweep()
    assert ages(capsys) == [1000.0]
    small.sweep()
    assert ages(capsys) == [0.0], "it was evaluated"


def test_blocks_of_two_threads_overlap_and_leave_the_logger_as_it_was(capsys):
    logger = get_logger()
    before = logger.level, list(logger.handlers), list(logger.filters)
    first, second = (about_rule("runs/mnist", rule, 3, "debug") for rule in ("first", "second"))
    with ThreadPoolExecutor(1) as one_thread, ThreadPoolExecutor(1) as another:
        one_thread.submit(first.__enter__).result()
        another.submit(second.__enter__).result()
        one_thread.submit(first.__exit__, None, None, None).result()
        another.submit(logger.debug, "of the second").result()
        one_thread.submit(logger.debug, "of a thread without a rule, below the level of the logger").result()
        another.submit(second.__exit__, None, None, None).result()
    assert (logger.level, logger.handlers, logger.filters) == before
    assert [(line["message"], line.get("rule")) for line in log_lines(capsys)] == [
        ("of the second", "second")
    ]


def test_a_block_that_outlives_a_command_of_this_process_leaves_the_logger_as_it_was():
    logger = get_logger()
    before = logger.level, list(logger.handlers), list(logger.filters)
    command, block = _quiet_library(debug=False), about_rule("runs/mnist", "mine", 3)
    command.__enter__()
    block.__enter__()
    command.__exit__(None, None, None)
    block.__exit__(None, None, None)
    assert (logger.level, logger.handlers, logger.filters) == before
