"""Schedules of the real handlers, as many as a test run has time for; `make simulate` runs more of them."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from tests.simulation.defects.edits import EDITS, is_noticed
from tests.simulation.defects.mutants import MUTANTS
from tests.simulation.invariants import simulate, story_of
from tests.simulation.many import CAUGHT_WITHIN, caught_at
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.schedule import Schedule
from tests.simulation.simulation import EXECUTION, HANDLERS, Simulation
from tests.simulation.state_machine import DEFINITION, TaskFailed, execute
from tests.support.looking import each

ROOT = Path(__file__).parents[2]
# Each of these broke a promise once. The tests of `functions` describe the defects.
ONCE_BROKEN = {
    "one worker, goes on": (242, 506, 726, 1518, 1529, 2295),
    "one worker, ends": (5193, 5248, 9956),
    "two workers, go on": (2620,),
    "two workers, end": (1510, 3028, 5393),
    "one skips a step": (9134, 507388),
    "one dies": (1006,),
    "of the old library": (435, 952, 3757, 5627),
    "collections come last": (3351, 5782),
    "a large memory": (701,),
    "a rule that breaks": (23450, 56747),
    "two runs at once": (5301, 11252),
    "resumed": (1, 6, 11, 27, 257),
    "two workers resume": (1, 4, 9, 21, 52, 135, 242, 7278, 400985),
    "a custom rule, resumed": (2, 7),
    "rules come and go": (3, 10, 13, 14471),
    "a rule comes back": (0, 5, 13218, 504815),
    "rules of an ended run": (9502, 11438, 17928, 100428),
    "actions and alerts": (2, 22, 36),
}
SCHEDULES = 120
CHUNK = 40


def test_the_handlers_are_those_that_are_deployed():
    deployed = (ROOT / "infra" / "functions.py").read_text(encoding="utf-8")
    for name, handler in each(HANDLERS.items(), at_least=10):
        file = Path(inspect.getsourcefile(handler) or "")
        assert file == ROOT / "functions" / "handlers" / f"{file.stem}.py"
        declared = rf'self\._(?:function|asynchronous)\(\s*"{name}",\s*"{file.stem}"'
        assert re.search(declared, deployed), name


#: The handlers that hold no promise of the application, each with what tests it.
NOT_SIMULATED = {
    "run_custom_rule": "a port answers in its place; tests/functions/custom_rules runs it",
    "post_webhook": "it keeps no state; tests/functions/test_webhooks.py repeats its events",
    "judge_runs": "a chunk is judged again or not at all; tests/backtesting/deployed ends it midway",
    "prepare_backtest": "it writes nothing; tests/functions/backtests/test_sandboxed.py",
    "keep_verdicts": "it writes one object; tests/functions/backtests/test_sandboxed.py",
    "plan_nightly": "its plan has the day's name; tests/functions/backtests/test_nightly.py",
    "write_report": "it writes one object from the table; tests/functions/test_write_report.py",
}


def test_every_handler_is_simulated_or_says_what_tests_it():
    handlers = {path.stem for path in (ROOT / "functions" / "handlers").glob("[a-z]*.py")}
    simulated = {Path(inspect.getsourcefile(handler) or "").stem for handler in HANDLERS.values()}
    assert handlers == simulated | NOT_SIMULATED.keys()


def test_the_state_machine_is_the_one_that_is_deployed():
    definition = DEFINITION.read_text(encoding="utf-8")
    assert DEFINITION == ROOT / "infra" / "workflow.asl.json"
    called = set(re.findall(r'"FunctionName": "\$\{(\w+)\}"', definition))
    assert called <= HANDLERS.keys()
    assert json.loads(definition)["TimeoutSeconds"] == EXECUTION


def test_a_failing_state_machine_reports_it():
    class Broken:
        def __init__(self) -> None:
            self.asked = 0
            self.left: list[object] = []

        def invoke(self, function: str, payload: object) -> object:
            self.asked += 1
            raise TaskFailed("Runtime.ExitError")

        def send(self, message: object, delay: float) -> None:
            self.left.append(message)

        def put_events(self, entries: object) -> None:
            raise AssertionError("nothing was found")

        def sleep(self, seconds: float) -> None:
            pass

        def now(self) -> float:
            return 0.0

    world = Broken()
    groups = [{"group": "builtin", "kind": "builtin"}]
    request = {
        "run": "b/r",
        "step": 3,
        "groups": groups,
        "finish": False,
        "until": "1970-01-02T00:00:00Z",
    }
    assert execute(request, world) == "Fail"
    assert world.asked == 3
    assert world.left == [{"check": "b/r"}]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_where_nothing_goes_wrong_each_rule_sees_each_step_once(scenario):
    straight = Simulation(scenario, Schedule.orderly()).run()
    for training in scenario.trainings:
        statuses = {
            rule.name: rule.status.value
            for group in straight.index.groups.all_of(training.run)
            for rule in group.rules
        }
        assert statuses.keys() == training.ever_wanted
        assert "InProgress" not in statuses.values() or not training.ends
    assert not len(straight.dead_letters)


def test_the_same_seed_gives_the_same_story():
    assert story_of(11) == story_of(11)
    assert story_of(11) != story_of(12)


@pytest.mark.parametrize(
    ("scenario", "seed"),
    [(scenario, seed) for scenario, seeds in ONCE_BROKEN.items() for seed in seeds],
)
def test_a_schedule_that_once_broke_a_promise_breaks_none(scenario, seed):
    simulate(seed, scenario)


@pytest.mark.parametrize("first", range(0, SCHEDULES, CHUNK))
def test_no_schedule_breaks_a_promise(first):
    for seed in range(first, first + CHUNK):
        simulate(seed)


QUICKLY_CAUGHT = (
    "messages are deleted before they are handled",
    "a step counts as complete by its event files alone",
    "a rule begins anew in each invocation",
    "the id of a finding holds the time",
)


@pytest.mark.parametrize("name", QUICKLY_CAUGHT)
def test_a_deliberate_breakage_is_caught(name):
    (number,) = (n for n, known in enumerate(MUTANTS) if known.name == name)
    assert caught_at(number, CAUGHT_WITHIN) is not None


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
def test_a_deliberate_edit_still_fits_its_source_and_its_test_exists(edit):
    compile(edit.applied(), edit.file, "exec")
    file, *_, test = edit.test.split("::")
    assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")


def test_a_deliberate_edit_is_noticed_by_its_plain_test():
    assert is_noticed(0)
