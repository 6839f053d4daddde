"""Files of earlier attempts that are not shown: where the newest attempt may have replaced them."""

from types import SimpleNamespace

from smdebug.trials.live.hidden_files import HiddenFiles
from smdebug.trials.stored.attempts import AttemptId

OLD, NEW = AttemptId("run", 0), AttemptId("run", 1)


def of(attempt, *workers):
    return {worker: SimpleNamespace(attempt=attempt) for worker in workers}


def hidden_behind(shown, *, steps=6, workers=("worker_0",)):
    hidden = HiddenFiles()
    hidden.find({step: of(OLD, *workers) for step in range(steps)}, shown, NEW)
    return hidden


def test_what_the_newest_attempt_has_passed_is_looked_at_once_and_what_it_wrote_never():
    hidden = hidden_behind({})
    assert hidden.worth_a_look(1) == [(0, "worker_0")], "the one that it writes next"
    hidden.written(3, ["worker_0"])
    assert hidden.worth_a_look(1) == [(step, "worker_0") for step in (0, 1, 2, 4)]
    assert hidden.worth_a_look(1) == [(4, "worker_0")]
    hidden.written(5, ["worker_0"])
    hidden.written(4, ["worker_0"])
    assert not hidden, "all that is left was written"


def test_steps_that_were_shown_already_say_how_far_the_newest_attempt_is():
    passed = [(step, "worker_0") for step in range(4)]
    assert hidden_behind({4: of(NEW, "worker_0")}).worth_a_look(1) == [*passed, (5, "worker_0")]
    assert hidden_behind({4: of(OLD, "worker_0")}).worth_a_look(1) == [(0, "worker_0")]


def test_nothing_is_looked_for_of_workers_that_the_newest_attempt_does_not_have():
    hidden = hidden_behind({}, steps=2, workers=("worker_0", "worker_3", "chief"))
    assert hidden.worth_a_look(3) == [(0, "worker_0"), (0, "chief")]
    everywhere = [(step, worker) for worker in ("worker_0", "chief") for step in range(2)]
    assert hidden.worth_a_look(3, everywhere=True) == everywhere
    assert (0, "worker_3") in hidden.worth_a_look(4)
