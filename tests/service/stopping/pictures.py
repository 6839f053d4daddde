"""`python -m tests.service.stopping.pictures`: jobs of Slurm and Kubernetes being stopped, in docs/images.

The process itself, with a queue of moto, and with the small Slurm and Kubernetes of its tests.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

import boto3

from smdebug.service.stopping import __main__ as process
from tests.service.stopping.fake_kubernetes import served
from tests.service.stopping.test_process import small_slurm
from tests.service.stopping.test_stop_requests import FOUND
from tests.support.mocked_aws import mocked_aws
from tools.pictures import IMAGES, drawn, shown

REASON = "the gradients vanish, since step 400"
PROGRAM = "python -m smdebug.service.stopping $QUEUE"


def main() -> int:
    """Write the picture."""
    commands: dict[str, Sequence[str]] = {}
    with mocked_aws(), tempfile.TemporaryDirectory() as folder:
        with patch.dict(os.environ, small_slurm(Path(folder))):
            commands[f"{PROGRAM} --slurm"] = answer("--slurm")
        with served() as cluster:
            cluster.add("mnist", args=["s3://runs/a"])
            commands[f"{PROGRAM} --kubernetes ml"] = answer("--kubernetes", "ml", "--api", cluster.url)
    lines: list[str] = []
    for command, printed in commands.items():
        lines += ["", f"\x1b[PROMPT]$ {command}\x1b[0m", *shown(printed)]
    (IMAGES / "stops.svg").write_text(drawn(lines, "; ".join(commands)), encoding="utf-8")
    return 0


def answer(*options: str) -> list[str]:
    """Return what the process prints for one finding in its queue."""
    sqs = boto3.client("sqs")
    queue = sqs.create_queue(QueueName="hpc")["QueueUrl"]
    finding = {**FOUND, "detail": {**FOUND["detail"], "text": REASON}}
    sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(finding))
    with redirect_stdout(io.StringIO()) as printed:
        assert process.main([queue, "--once", *options], boto3.client) == 0
    return printed.getvalue().splitlines()


if __name__ == "__main__":
    sys.exit(main())
