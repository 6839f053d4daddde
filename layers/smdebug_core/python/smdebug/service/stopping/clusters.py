"""What stops jobs: the interface of a cluster, and the decision which job of a run is stopped."""

from __future__ import annotations

from typing import Protocol

from smdebug.service.stopping.stop_requests import StopRequest


class Cluster(Protocol):
    """Running jobs that say which runs they train. Errors are `SMDebugError`s with what to do."""

    def jobs_of(self, run: str) -> list[str]:
        """Return the running jobs that name the run."""

    def stop(self, job: str, reason: str) -> None:
        """Stop the job; nothing happens if it is gone."""


def carry_out(request: StopRequest, cluster: Cluster) -> str:
    """Stop the run's job if exactly one says that it trains it; return what was done, or why not."""
    jobs = cluster.jobs_of(request.run)
    if len(jobs) == 1:
        cluster.stop(jobs[0], request.reason)
        return f"stopped {jobs[0]}, which trains s3://{request.run}: {request.reason}"
    if jobs:
        return f"stopped nothing: several jobs name s3://{request.run} ({', '.join(sorted(jobs)[:5])})"
    return f"stopped nothing: no running job names s3://{request.run}"
