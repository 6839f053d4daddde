"""The walk of a PUT, from the hook to the event, in one place: real functions, real files, nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from functions.decisions.alerts import email
from smdebug import Hook, SaveConfig
from smdebug.files.notes.checkpoints import Checkpoint, encode_checkpoints
from smdebug.storage.memory import MemoryStorage
from tests.functions.small_world import SmallWorld


def train(place: MemoryStorage, *, steps: int = 4, failing_from: int | None = None, **hook) -> None:
    """A training that saves a gradient at every step; from some step on, it explodes."""
    hook.setdefault("include_collections", ["gradients"])
    with Hook(out_dir=place, save_config=SaveConfig(save_interval=1), **hook) as saver:
        for step in range(steps):
            with saver.step():
                failing = failing_from is not None and step >= failing_from
                gradient = np.full(8, np.nan if failing else 0.5, np.float32)
                saver.record("gradient/fc", gradient)


def test_a_saved_step_is_evaluated_and_its_finding_is_published():
    small = SmallWorld()
    train(small.place(), failing_from=2)
    small.bucket.hold_back("training_job_end")
    small.settle()

    (found,) = small.details("Rule Evaluation Condition Met")
    assert found["rule"] == "ExplodingTensor"
    assert found["step"] == 2
    assert found["run"] == "runs/mnist"
    assert found["evidence"]["worst"][0]["tensor"] == "gradient/fc"
    assert found["last_good_step"] == 1
    times = found["times"]
    assert all(times[name] for name in ("saved", "uploaded", "indexed", "evaluated", "published"))
    assert small.statuses() == {
        "VanishingGradient": "InProgress",
        "ExplodingTensor": "IssuesFound",
        "LossNotDecreasing": "InProgress",
    }
    (group,) = small.index.groups.all_of("runs/mnist")
    assert group.cursor == 3
    assert group.outbox == {}


def test_at_the_end_every_rule_has_its_last_status_and_the_run_its_summary():
    small = SmallWorld()
    train(small.place(), failing_from=2)
    small.settle()  # no grace is needed: all workers have closed

    assert small.index.run("runs/mnist").state.value == "Finished"
    assert small.statuses() == {
        "VanishingGradient": "NoIssuesFound",
        "ExplodingTensor": "IssuesFound",
        "LossNotDecreasing": "NotChecked",
    }
    summary = small.details("Run State Change")[-1]
    assert summary["state"] == "Finished"
    assert summary["summary"]["steps"] == 4
    assert summary["summary"]["statuses"] == {"NoIssuesFound": 1, "NotChecked": 1, "IssuesFound": 1}


def with_checkpoints(small: SmallWorld, content: bytes) -> None:
    """Let a training fail from step 2 on, which has written this as its `checkpoints.json`."""
    small.place().write("checkpoints.json", content)
    train(small.place(), failing_from=2)
    small.settle()


def test_a_finding_names_the_last_checkpoint_before_its_problem():
    small = SmallWorld()
    marked = [
        Checkpoint(-1, "weights/start.pt"),
        Checkpoint(1, "weights/1.pt", 7.5),
        Checkpoint(2, "weights/2.pt"),
    ]
    with_checkpoints(small, encode_checkpoints("", marked))

    (found,) = small.details("Rule Evaluation Condition Met")
    assert found["diagnosis"]["resume_from"] == {"step": 1, "path": "weights/1.pt", "time": 7.5}
    assert "weights/1.pt, saved after step 1, is the last checkpoint" in email(
        "Rule Evaluation Condition Met", found
    )


@pytest.mark.parametrize(
    "content",
    [
        encode_checkpoints("", [Checkpoint(2, "weights/2.pt")]),
        encode_checkpoints("", []),
        b'{"checkpoints": [{"step": 1',
    ],
    ids=["later", "none", "cut off"],
)
def test_a_finding_without_a_checkpoint_to_resume_from_says_so(content):
    small = SmallWorld()
    with_checkpoints(small, content)

    (found,) = small.details("Rule Evaluation Condition Met")
    assert found["diagnosis"]["resume_from"] is None
