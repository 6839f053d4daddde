from __future__ import annotations

import json

import pytest

from functions.arrivals.batch import read_batch
from functions.decisions.messages import Reminder
from tests.functions.decisions.test_messages import notification


def message(identifier: str, body: str, received: int = 1) -> dict:
    attributes = {"ApproximateReceiveCount": str(received)}
    return {"messageId": identifier, "body": body, "attributes": attributes}


def batch_of(*messages: dict):
    return read_batch({"Records": list(messages)})


def test_files_are_handed_out_run_by_run():
    batch = batch_of(
        message("1", notification("b", "x/rules.json")),
        message("2", notification("b", "y/rules.json")),
        message("3", notification("b", "x/training_job_end.ts")),
    )
    assert [(run, len(files)) for run, files in batch.by_run()] == [("b/x", 2), ("b/y", 1)]
    assert batch.answer() == {"batchItemFailures": []}


def test_only_the_messages_of_a_failed_run_are_redelivered():
    batch = batch_of(
        message("1", notification("b", "x/rules.json")),
        message("2", notification("b", "y/rules.json")),
        message("3", notification("b", "x/training_job_end.ts")),
    )
    for run, _ in batch.by_run():
        with batch.seen_again_if_it_fails(run):
            if run == "b/x":
                raise OSError("no table")
    assert batch.answer() == {"batchItemFailures": [{"itemIdentifier": "1"}, {"itemIdentifier": "3"}]}


def test_a_poisoned_message_goes_its_way_while_the_good_ones_pass(capsys):
    batch = batch_of(message("1", "poison"), message("2", notification("b", "x/rules.json")))
    assert batch.answer() == {"batchItemFailures": [{"itemIdentifier": "1"}]}
    assert len(batch.arrivals) == 1
    output = json.loads(capsys.readouterr().out)
    assert output["level"] == "ERROR"
    assert "poison" in output["problem"]


def test_stopping_the_process_is_not_delayed():
    batch = batch_of(message("1", notification("b", "x/rules.json")))
    with pytest.raises(KeyboardInterrupt), batch.seen_again_if_it_fails("b/x"):
        raise KeyboardInterrupt


def test_our_own_messages_are_recognised_and_each_delivery_is_an_attempt():
    batch = batch_of(message("1", '{"check": "b/x"}'), message("2", '{"finish": "b/y"}', 3))
    assert batch.reminders == [Reminder("b/x"), Reminder("b/y", finish=True)]
    assert batch.attempt == "2-3"


def test_a_redelivered_message_is_another_attempt():
    assert batch_of(message("1", notification("b", "x/rules.json"))).attempt == ""
    assert batch_of(message("1", notification("b", "x/rules.json"), 2)).attempt == "1-2"
