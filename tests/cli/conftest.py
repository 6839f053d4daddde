"""The command line as a user sees it, and runs for it to read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import numpy as np
import pytest

from smdebug.cli.main import main
from smdebug.files.names import END_MARKER, event_key
from smdebug.mode_keys import ModeKeys
from tests.rules.made_runs import MadeRun
from tests.support.answers import check_answer
from tests.support.mocked_aws import mocked_aws

BUCKET = "my-bucket"
NAMED = ("SMDEBUG_TABLE", "SMDEBUG_BUCKET", "SMDEBUG_STACK", "SMDEBUG_LOG_GROUPS")


class Answer(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Ask = Callable[..., Answer]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")

    def asked(*words: object) -> Answer:
        capsys.readouterr()
        texts = [str(word) for word in words]
        code = main(texts)
        output = capsys.readouterr()
        check_answer(texts, output.out)
        return Answer(code, output.out, output.err)

    return asked


def failing_run(place: Any = None, *, steps: int = 10, workers: int = 1) -> MadeRun:
    """A run whose gradients vanish from step 40 on, and whose loss stays constant."""
    run = MadeRun(place, workers=workers)
    for step in range(0, 10 * steps, 10):
        for rank in range(workers):
            small = 1e-9 if step >= 40 else 1.0
            tensors = {
                "loss": np.array([2.0 - step / 100], np.float32),
                "gradient/fc": np.full((2, 3), small * (1 + rank), np.float32),
                "fc.weight": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3) + step,
            }
            run.save(step, tensors, mode=ModeKeys.TRAIN, mode_step=step, rank=rank)
    return run.end()


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    failing_run(tmp_path / "failing")
    return tmp_path / "failing"


@pytest.fixture
def in_progress(tmp_path: Path) -> Path:
    """A run that no training has ended yet."""
    failing_run(tmp_path / "in progress")
    (tmp_path / "in progress" / END_MARKER).unlink()
    return tmp_path / "in progress"


def flip_a_bit(failing: Path) -> None:
    """Flip a bit in the loss of step 20."""
    file = failing / event_key(20, "worker_0")
    data = bytearray(file.read_bytes())
    data[data.index(np.float32(1.8).tobytes())] ^= 1
    file.write_bytes(data)


@pytest.fixture
def aws() -> Iterator[None]:
    with mocked_aws():
        for name in (*NAMED, "AWS_PROFILE"):
            os.environ.pop(name, None)
        yield


@pytest.fixture
def bucket(aws: None) -> str:
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    return BUCKET
