"""Parses the profiler's JSON, for code that reads it. It has no effect.

    {"ProfilingParameters": {"LocalPath": "/opt/ml/output/profiler",
                             "DetailedProfilingConfig": "{\\"StartStep\\": 5, \\"NumSteps\\": 2}"}}

Values inside are JSON in a string, or a dictionary as Python writes it: both are parsed as data.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from smdebug.config.parsing import truth, whole_number
from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.logger import get_logger

CONFIG_PATH_ENV_VAR = "SMPROFILER_CONFIG_PATH"
CONFIG_PATH_DEFAULT = "/opt/ml/input/config/profilerconfig.json"
BASE_FOLDER_DEFAULT = "/opt/ml/output/profiler"
MAX_FILE_SIZE_DEFAULT = 10485760
CLOSE_FILE_INTERVAL_DEFAULT = 60
FILE_OPEN_FAIL_THRESHOLD_DEFAULT = 50
LONGEST_TEXT = 10_000


class MetricsCategory(Enum):
    """The measurements of the profiler."""

    DETAILED_PROFILING = 1
    DATALOADER_PROFILING = 2
    PYTHON_PROFILING = 3
    SMDATAPARALLEL_PROFILING = 4


@dataclass(frozen=True)
class TraceFile:
    """The rotation of trace files."""

    file_max_size: int = MAX_FILE_SIZE_DEFAULT
    file_close_interval: int = CLOSE_FILE_INTERVAL_DEFAULT
    file_open_fail_threshold: int = FILE_OPEN_FAIL_THRESHOLD_DEFAULT


@dataclass(frozen=True)
class ProfileRange:
    """When a measurement is taken: parameters by lower-case name; without parameters, never."""

    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_enabled(self) -> bool:
        return bool(self.parameters)

    @property
    def start_step(self) -> int | None:
        return _number(self.parameters, "startstep")

    @property
    def num_steps(self) -> int | None:
        return _number(self.parameters, "numsteps")

    @property
    def start_time_in_sec(self) -> int | None:
        return _number(self.parameters, "starttimeinsecsinceepoch")

    @property
    def duration_in_sec(self) -> int | None:
        return _number(self.parameters, "durationinseconds")


@dataclass(frozen=True)
class ProfilerConfig:
    """The content of the file."""

    local_path: str = BASE_FOLDER_DEFAULT
    trace_file: TraceFile = field(default_factory=TraceFile)
    detailed_profiling_config: ProfileRange = field(default_factory=ProfileRange)
    dataloader_profiling_config: ProfileRange = field(default_factory=ProfileRange)
    python_profiling_config: ProfileRange = field(default_factory=ProfileRange)
    smdataparallel_profiling_config: ProfileRange = field(default_factory=ProfileRange)

    @classmethod
    def from_parameters(cls, given: Mapping[str, Any]) -> ProfilerConfig:
        """Create it from the profiling parameters by lower-case name."""

        def number(name: str, default: int) -> int:
            return whole_number(given.get(name, default), name)

        return cls(
            local_path=str(given.get("localpath", BASE_FOLDER_DEFAULT)),
            trace_file=TraceFile(
                number("rotatemaxfilesizeinbytes", MAX_FILE_SIZE_DEFAULT),
                number("rotatefilecloseintervalinseconds", CLOSE_FILE_INTERVAL_DEFAULT),
                number("fileopenfailthreshold", FILE_OPEN_FAIL_THRESHOLD_DEFAULT),
            ),
            detailed_profiling_config=_range(given, "detailedprofilingconfig"),
            dataloader_profiling_config=_range(given, "dataloaderprofilingconfig"),
            python_profiling_config=_range(given, "pythonprofilingconfig"),
            smdataparallel_profiling_config=_range(given, "smdataparallelprofilingconfig"),
        )


class ProfilerConfigParser:
    """Reads the profiler's configuration file; without a usable one `profiling_enabled` is False."""

    def __init__(self, framework: Any = None):
        self.framework = framework
        self.config: ProfilerConfig | None = None
        self.last_json_config: dict[str, Any] | None = None
        self.profiling_enabled = False
        self.load_config()

    def load_config(self) -> None:
        """Read the file again if it has changed."""
        path = Path(os.environ.get(CONFIG_PATH_ENV_VAR, CONFIG_PATH_DEFAULT))
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError):
            self.config, self.last_json_config, self.profiling_enabled = None, None, False
            return
        try:
            content = parse_profiler_json(text)
            if content == self.last_json_config:
                return
            self.last_json_config = content
            given = content.get("profilingparameters")
            disabled = truth(content.get("disableprofiler", False), "DisableProfiler")
            wanted = given if isinstance(given, Mapping) and given and not disabled else None
            self.config = None if wanted is None else ProfilerConfig.from_parameters(wanted)
            self.profiling_enabled = wanted is not None
        except SMDebugError as error:
            get_logger().error("The profiler's configuration %s is not used: %s", path, error)
            self.config, self.profiling_enabled = None, False

    def should_save_metrics(
        self,
        metrics_category: MetricsCategory,
        current_step: int,
        metrics_name: str | None = None,
        current_time: float | None = None,
    ) -> bool:
        """Return False: the profiler is not part of this library."""
        return False


def parse_profiler_json(text: str) -> dict[str, Any]:
    """Return the profiler's JSON with keys in lower case; raise SMDebugValueError if it is invalid."""
    content = _data(text, "The profiler's configuration")
    return {
        key: _lowered(value) if key == "profilingparameters" and isinstance(value, Mapping) else value
        for key, value in content.items()
    }


_parser: ProfilerConfigParser | None = None


def get_profiler_config_parser(framework: Any = None) -> ProfilerConfigParser:
    """Return the parser of this process."""
    global _parser
    if _parser is None:
        _parser = ProfilerConfigParser(framework)
    return _parser


def reset_profiler_config_parser() -> None:
    """Forget the parser, so that the next one reads the file again."""
    global _parser
    _parser = None


def _range(given: Mapping[str, Any], name: str) -> ProfileRange:
    value = given.get(name)
    if not value:
        return ProfileRange()
    found = ProfileRange(_lowered(value) if isinstance(value, Mapping) else _data(str(value), name))
    for number in ("startstep", "numsteps", "starttimeinsecsinceepoch", "durationinseconds"):
        _number(found.parameters, number)
    return found


def _number(parameters: Mapping[str, Any], name: str) -> int | None:
    value = parameters.get(name)
    return None if value is None else whole_number(value, name)


def _data(text: str, what: str) -> dict[str, Any]:
    """Return the dictionary in `text`, JSON or a Python literal. No code is run."""
    if len(text) > LONGEST_TEXT:
        raise SMDebugValueError(f"{what} has {len(text)} characters; {LONGEST_TEXT} are allowed")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            raise SMDebugValueError(f"{what} is not a JSON object: {text[:80]!r}") from error
    if not isinstance(value, Mapping):
        raise SMDebugValueError(f"{what} is not a JSON object: {text[:80]!r}")
    return _lowered(value)


def _lowered(given: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key).lower(): value for key, value in given.items()}
