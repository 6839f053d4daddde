"""Constants of the old library's profiler, for code that imports them."""

from __future__ import annotations

CONVERT_TO_MICROSECS = 1_000_000
DEFAULT_PREFIX = "framework"
HOROVODTIMELINE_SUFFIX = "horovod_timeline.json"
SMDATAPARALLELTIMELINE_SUFFIX = "smdataparallel_timeline.json"
TRACE_DIRECTORY_FORMAT = "%Y%m%d%H"
