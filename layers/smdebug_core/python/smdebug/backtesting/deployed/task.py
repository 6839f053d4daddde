"""What the functions of a deployed backtest have to know besides the runs: the question and its code."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import smdebug
from smdebug.backtesting.deployed.plan import BUNDLES, Chunk, manifest_key, plan_key, rows_folder
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.judging import Judged
from smdebug.backtesting.question import Question
from smdebug.exceptions import DamagedFile, SMDebugValueError
from smdebug.storage import Storage

LARGEST_CODE = 60_000
"""Bytes of the compressed code of a rule: it passes through the state machine with each chunk."""
_FORMAT = 1


@dataclass(frozen=True)
class Task:
    """A question that can be asked elsewhere."""

    question: Question
    budget: float
    """In dollars: no further chunk is begun once they are spent."""
    code: Mapping[str, str] = field(default_factory=dict)
    """The compressed files of the rules: `file`, and `against`, an older version."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of these files."""
    version: str = smdebug.__version__
    purse: str = ""
    """The backtest whose budget it goes on with; empty if it has its own."""

    @property
    def is_custom(self) -> bool:
        """Whether it has code of the user's, which runs in the sandbox only."""
        return bool(self.code)

    @classmethod
    def of(cls, question: Question, budget: float) -> Task:
        """Return the task; `SMDebugValueError` if the code is too large to be handed over."""
        files = {name: getattr(question, name) for name in ("file", "against")}
        code = {name: _packed(Path(file)) for name, file in files.items() if file is not None}
        names = {name: Path(file).name for name, file in files.items() if file is not None}
        bare = replace(question, file=None, against=None, where=(), since=None)
        return cls(bare, budget, code, names)

    def unpacked_in(self, folder: Path) -> Question:
        """Write the code into the folder; return the question about it."""
        files: dict[str, str] = {}
        for name, packed in self.code.items():
            place = folder / name
            place.mkdir()
            file = place / Path(self.names[name]).name
            file.write_bytes(zlib.decompress(b64decode(packed)))
            files[name] = str(file)
        return replace(self.question, **files)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "format": _FORMAT,
            "version": self.version,
            "question": self.question.to_dict(),
            "budget": self.budget,
            "code": dict(self.code),
            "names": dict(self.names),
            "purse": self.purse,
        }

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Task:
        return cls(
            Question.from_dict(payload["question"]),
            float(payload["budget"]),
            dict(payload["code"]),
            dict(payload["names"]),
            str(payload["version"]),
            str(payload.get("purse", "")),
        )


def _packed(file: Path) -> str:
    packed = b64encode(zlib.compress(file.expanduser().read_bytes(), 9)).decode("ascii")
    if len(packed) > LARGEST_CODE:
        raise SMDebugValueError(
            f"{file} has {len(packed):,} bytes when compressed, and a deployed backtest takes up to "
            f"{LARGEST_CODE:,}: split the file, or backtest without --deployed"
        )
    return packed


def write_task(bucket: Storage, id: str, task: Task, chunks: Iterable[tuple[Chunk, float]]) -> None:
    """Write what the functions read: the plan, and the manifest with an entry for each chunk."""
    entries = [chunk.to_dict(id, dollars=dollars, custom=task.is_custom) for chunk, dollars in chunks]
    bucket.write(plan_key(id), json.dumps(task.to_dict()).encode())
    bucket.write(manifest_key(id), json.dumps(entries, separators=(",", ":")).encode())


def read_task(bucket: Storage, id: str) -> Task:
    """Return the task of a backtest, which has a budget of its own unless it names another's."""
    task = Task.from_dict(json.loads(bytes(bucket.read(plan_key(id)))))
    return task if task.purse else replace(task, purse=id)


def encoded_verdicts(verdicts: Sequence[tuple[FoundRun, Judged]]) -> bytes:
    """Return the verdicts of a chunk as they are kept in the bucket."""
    return json.dumps([{"run": list(run), "judged": judged.to_dict()} for run, judged in verdicts]).encode()


def bundles_in(bucket: Storage) -> frozenset[str]:
    """Return the names of the bundles that runs of the bucket have."""
    return frozenset(key.removeprefix(BUNDLES) for key in bucket.list(BUNDLES))


def verdicts_in(bucket: Storage, id: str) -> Iterator[tuple[FoundRun, Judged]]:
    """Yield the verdicts of a backtest so far."""
    for key in bucket.list(rows_folder(id)):
        try:
            payload = json.loads(bytes(bucket.read(key)))
            found = [(FoundRun(*each["run"]), Judged.from_dict(each["judged"])) for each in payload]
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedFile(key, f"these are not verdicts ({error})") from error
        yield from found
