"""Whether a job of SageMaker or AWS Batch says itself that it trains a run: only then may the run stop it.

The name of a run proves nothing, as whoever may write to a folder can choose it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

RUN_TAG = "smdebug:run"
_IN_PROGRESS = "InProgress"
_RUNNING = "RUNNING"


@dataclass(frozen=True)
class JobClaims:
    """What a job says of the runs that it trains; places are written without `s3://`."""

    name: str
    in_progress: bool
    runs: tuple[str, ...] = ()  # that it names exactly
    folders: tuple[str, ...] = ()  # of its own, below which all runs are its own

    def trains(self, run: str) -> bool:
        """Whether the run is one that the job names, or is below a folder of the job."""
        return run in self.runs or any(run == place or run.startswith(f"{place}/") for place in self.folders)


def claims_of(description: Mapping[str, Any], tags: Iterable[Mapping[str, Any]]) -> JobClaims:
    """Return what a description by DescribeTrainingJob, and the job's tags, say.

    Many jobs share an output path, and each has a folder of its name below it; a hook's address is often
    shared, too. A checkpoint's address belongs to one job, unless it is a whole bucket.
    """
    name = str(description.get("TrainingJobName") or "")
    output = _place(description, "OutputDataConfig", "S3OutputPath")
    hook = _place(description, "DebugHookConfig", "S3OutputPath")
    checkpoint = _place(description, "CheckpointConfig", "S3Uri")
    folders = [f"{place}/{name}" for place in (output, hook) if place and name]
    if "/" in checkpoint:
        folders.append(checkpoint)
    named = [_plain(tag.get("Value")) for tag in tags if tag.get("Key") == RUN_TAG]
    runs = [place for place in (hook, *named) if "/" in place]
    return JobClaims(name, description.get("TrainingJobStatus") == _IN_PROGRESS, tuple(runs), tuple(folders))


def batch_claims_of(description: Mapping[str, Any]) -> JobClaims:
    """Return what a job's description by DescribeJobs says: its tag, or else its environment and command.

    A job may also name runs that it only reads. The tag says which one it trains, so it alone counts if it
    is there. The name is the id, which distinguishes the jobs of an account.
    """
    tagged = _plain((description.get("tags") or {}).get(RUN_TAG))
    runs = (tagged,) if tagged else tuple(filter(None, map(_plain, _texts_of(description))))
    return JobClaims(str(description.get("jobId") or ""), description.get("status") == _RUNNING, runs)


def _texts_of(description: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the values of parameters and variables, and the command's words, also those behind a `=`."""
    yield from (description.get("parameters") or {}).values()
    ranges = (description.get("nodeProperties") or {}).get("nodeRangeProperties") or ()
    for container in (description.get("container"), *(nodes.get("container") for nodes in ranges)):
        for variable in (container or {}).get("environment") or ():
            yield variable.get("value")
        for word in (container or {}).get("command") or ():
            yield word
            yield str(word).partition("=")[2]


def _place(description: Mapping[str, Any], section: str, key: str) -> str:
    return _plain((description.get(section) or {}).get(key))


def _plain(address: Any) -> str:
    """Return an address without `s3://` and final slash; empty if it is not one."""
    is_address = isinstance(address, str) and address.startswith("s3://")
    return address.removeprefix("s3://").rstrip("/") if is_address else ""
