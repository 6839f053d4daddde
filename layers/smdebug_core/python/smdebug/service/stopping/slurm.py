"""Jobs of Slurm: those of this user, whose comments name their runs, are cancelled."""

from __future__ import annotations

import subprocess

from smdebug.exceptions import SMDebugCustomerError, StorageUnavailable
from smdebug.service.stopping.stop_requests import named_in

_SECONDS = 60


class SlurmJobs:
    """The running jobs of this user, by `squeue` and `scancel`."""

    def jobs_of(self, run: str) -> list[str]:
        lines = _output("squeue", "--me", "--noheader", "--states=RUNNING", "--format=%i|%k").splitlines()
        jobs = (line.strip().partition("|") for line in lines)
        return [job for job, _, comment in jobs if run in named_in(comment.split())]

    def stop(self, job: str, reason: str) -> None:
        _output("scancel", job)


def _output(*command: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - Slurm's own commands, with the id of a job
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except FileNotFoundError as error:
        raise SMDebugCustomerError(
            f"There is no {command[0]} on this machine: run this where Slurm is"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise StorageUnavailable("Slurm", f"{command[0]} has not answered for {_SECONDS} s") from error
    if done.returncode:
        problem = done.stderr.strip().partition("\n")[0]
        raise StorageUnavailable("Slurm", f"{command[0]} ended with {done.returncode}: {problem}")
    return done.stdout
