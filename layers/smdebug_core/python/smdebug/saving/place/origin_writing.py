"""Collects where a run comes from and writes it beside the run.

`git` may take seconds in a large repository, and a storage may not answer; the training waits for neither.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from smdebug.config.constants import KEPT_NAMES_KEY, ORIGIN_KEY
from smdebug.config.hyperparameters import LONGEST_TEXT, flat_config
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.files.names import ORIGIN
from smdebug.files.notes.origin import Origin
from smdebug.saving.place.attempt import StartedAttempt
from smdebug.saving.place.written_soon import WrittenSoon
from smdebug.secrets.arguments import redacted_command
from smdebug.secrets.texts import redacted
from smdebug.storage.base import Storage

GIT_SECONDS = 10.0
CLOSING_SECONDS = 10.0
"""How long the end of a run waits for the file."""
HYPERPARAMETERS_ENV_VAR = "SM_HPS"
"""The hyperparameters of a SageMaker job, as JSON."""
_MOST_ARGUMENTS = 200
_MOST_TAGS = 50
_LONGEST_CHECKED = 20 * LONGEST_TEXT
EVERYTHING = "all"
VERSIONS = "versions"
"""Keep the versions of Python and the frameworks, and nothing else of where the run comes from."""
#: Imported module -> distribution: their versions are kept if the training has imported them.
_PACKAGES = {
    "torch": "torch",
    "tensorflow": "tensorflow",
    "keras": "keras",
    "jax": "jax",
    "flax": "flax",
    "xgboost": "xgboost",
    "mxnet": "mxnet",
    "transformers": "transformers",
    "lightning": "lightning",
    "pytorch_lightning": "pytorch-lightning",
    "accelerate": "accelerate",
    "deepspeed": "deepspeed",
    "datasets": "datasets",
    "torchvision": "torchvision",
    "sklearn": "scikit-learn",
    "pandas": "pandas",
    "numpy": "numpy",
}


class GitState(NamedTuple):
    """The commit that a training runs from."""

    commit: str = ""
    branch: str = ""
    dirty: bool | None = None


class Description(NamedTuple):
    """What the user says about a run: hyperparameters, tags and a note, and how much of it is kept."""

    config: Mapping[str, Any] = {}
    tags: tuple[str, ...] = ()
    note: str = ""
    not_secret: tuple[str, ...] = ()
    versions_only: bool = False


def described(
    config: Any, tags: Any, note: Any, *, origin: str = EVERYTHING, not_secret: Any = ()
) -> Description:
    """Return the description of the run in a hook's options and the environment.

    Raise `SMDebugTypeError` for wrong types.
    """
    names = (*checked_names(not_secret), *checked_names(os.environ.get(KEPT_NAMES_KEY, "")))
    flat = flat_config(config, not_secret=names)
    versions_only = VERSIONS in (checked_origin(origin), checked_origin(os.environ.get(ORIGIN_KEY, "")))
    if versions_only:
        _tags(tags, ())
        _note(note, ())
        return Description(versions_only=True)
    return Description(flat, _tags(tags, names), _note(note, names), names)


def checked_origin(origin: Any) -> str:
    """Return how much is kept: `all` or `versions`; raise `SMDebugValueError` for anything else."""
    kept = str(origin).strip().lower() or EVERYTHING
    if kept not in (EVERYTHING, VERSIONS):
        raise SMDebugValueError(
            f'origin (or {ORIGIN_KEY}) must be "{EVERYTHING}" or "{VERSIONS}", not {origin!r:.100}'
        )
    return kept


def checked_names(names: Any) -> tuple[str, ...]:
    """Return the names in a list, or in a text with commas; raise `SMDebugTypeError` for anything else."""
    listed = names.split(",") if isinstance(names, str) else names if names is not None else ()
    if not isinstance(listed, list | tuple | set | frozenset) or not all(
        isinstance(name, str) for name in listed
    ):
        raise SMDebugTypeError(f"not_secret must be a list of names, not {type(names).__name__}")
    return tuple(name.strip() for name in listed if name.strip())


class RunOrigin:
    """Writes the origin of one run. `add` extends the configuration, before or while it is written."""

    def __init__(self, description: Description):
        self._description = description
        self._lock = threading.Lock()
        self._attempt: StartedAttempt | None = None
        self._started = ""
        self._file = WrittenSoon(ORIGIN, self._content, "The origin of the run")

    @property
    def keeps_versions_only(self) -> bool:
        """Whether nothing but versions is kept."""
        return self._description.versions_only

    def add(self, config: Any) -> None:
        """Add hyperparameters. Those that are known already stay as they are."""
        flat = flat_config(config, not_secret=self._description.not_secret)
        if self.keeps_versions_only or self._file.is_in_another_process:
            return
        with self._lock:
            known = self._description.config
            new = {name: value for name, value in flat.items() if name not in known}
            self._description = self._description._replace(config={**known, **new})
        if new:
            self._file.change()

    def begin(self, storage: Storage, attempt: StartedAttempt) -> None:
        """Begin to write, as the first step begins."""
        self._attempt = attempt
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._file.begin(storage)
        self._file.change()

    def finish(self, seconds: float = CLOSING_SECONDS) -> None:
        """Wait for the file. In a forked child, do nothing."""
        self._file.finish(seconds)

    def _content(self) -> bytes:
        state = GitState() if self.keeps_versions_only else git_state(_code_folder())
        assert self._attempt is not None
        origin = replace(
            _described_origin(self._description, state),
            run_id=self._attempt.run_id,
            training_run=self._attempt.training_run,
            started=self._started,
        )
        return origin.encode()


def _described_origin(description: Description, state: GitState) -> Origin:
    if description.versions_only:
        return Origin(python=platform.python_version(), packages=versions())
    names = description.not_secret
    return replace(
        origin_of_process(state, names),
        config=description.config or _job_hyperparameters(names),
        tags=description.tags,
        note=description.note,
        not_secret=names,
    )


def origin_of_process(state: GitState, not_secret: tuple[str, ...] = ()) -> Origin:
    """Return the origin as far as this process knows it."""
    return Origin(
        command=tuple(command_line(not_secret)),
        python=platform.python_version(),
        platform=platform.platform(),
        host=socket.gethostname(),
        packages=versions(),
        commit=state.commit,
        branch=state.branch,
        dirty=state.dirty,
    )


def command_line(not_secret: tuple[str, ...] = ()) -> list[str]:
    """Return how this process was started, without secrets."""
    given = sys.orig_argv or [sys.executable, *sys.argv]
    arguments = [Path(given[0]).name or "python", *given[1:_MOST_ARGUMENTS]]
    arguments = [argument[:_LONGEST_CHECKED] for argument in arguments]
    return [argument[:LONGEST_TEXT] for argument in redacted_command(arguments, not_secret)]


def versions() -> dict[str, str]:
    """Return the versions of the frameworks that were imported."""
    found: dict[str, str] = {}
    for module, distribution in _PACKAGES.items():
        if module in sys.modules:
            try:
                found[distribution] = metadata.version(distribution)
            except metadata.PackageNotFoundError:
                version = getattr(sys.modules[module], "__version__", None)
                if isinstance(version, str):
                    found[distribution] = version
    library = getattr(sys.modules.get("smdebug"), "__version__", None)
    return {**found, "smdebug": str(library)} if library else found


@cache
def git_state(folder: Path) -> GitState:
    """Return the commit of the folder's repository: that of the first call, when the code was loaded."""
    head = _git(folder, "rev-parse", "HEAD")
    if not head:
        return GitState()
    branch = _git(folder, "rev-parse", "--abbrev-ref", "HEAD") or ""
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    dirty = None if changes is None else bool(changes)
    return GitState(head[:64], "" if branch == "HEAD" else branch[:LONGEST_TEXT], dirty)


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of git; None if it fails, is missing or takes too long."""
    try:
        done = subprocess.run(  # noqa: S603 - arguments of our own
            ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments],  # noqa: S607
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None


def _code_folder() -> Path:
    """Return the folder of the script, or else the current one."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script and "site-packages" not in str(script) and Path(script).is_file():
        return Path(script).resolve().parent
    return Path.cwd()


def _job_hyperparameters(not_secret: tuple[str, ...]) -> dict[str, Any]:
    try:
        given = json.loads(os.environ.get(HYPERPARAMETERS_ENV_VAR) or "{}")
        return dict(flat_config(given, not_secret=not_secret))
    except (ValueError, SMDebugTypeError):
        return {}


def _tags(tags: Any, not_secret: tuple[str, ...]) -> tuple[str, ...]:
    listed: Sequence[Any] = [tags] if isinstance(tags, str) else tags if tags is not None else ()
    if not isinstance(listed, list | tuple | set | frozenset) or not all(
        isinstance(tag, str) for tag in listed
    ):
        raise SMDebugTypeError(f"tags must be a list of texts, not {type(tags).__name__}")
    shown = redacted_command((tag[:_LONGEST_CHECKED] for tag in listed), not_secret)
    return tuple(tag[:LONGEST_TEXT] for tag in shown)[:_MOST_TAGS]


def _note(note: Any, not_secret: tuple[str, ...]) -> str:
    if note is not None and not isinstance(note, str):
        raise SMDebugTypeError(f"note must be a text, not {type(note).__name__}")
    return redacted((note or "")[:_LONGEST_CHECKED], not_secret)[:LONGEST_TEXT]
