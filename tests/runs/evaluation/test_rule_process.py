"""The process of a rule ends with the process that started it."""

from __future__ import annotations

import os
import subprocess
import sys


def test_it_ends_if_the_process_that_asks_died_before_it_was_ready():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    theirs_in, requests = os.pipe()
    answers, theirs_out = os.pipe()
    try:
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "from smdebug.runs.evaluation.rule_process import main; main()",
                *map(str, (theirs_in, theirs_out, gone.pid)),
            ],
            pass_fds=(theirs_in, theirs_out),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            check=False,
            timeout=60,
        )
    finally:
        for file in (theirs_in, requests, answers, theirs_out):
            os.close(file)
    assert done.returncode == 1
