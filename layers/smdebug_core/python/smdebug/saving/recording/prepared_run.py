"""What is known of a run once its first step begins."""

from __future__ import annotations

from typing import NamedTuple

from smdebug.saving.place.resume import CheckpointNotes
from smdebug.saving.planning.save_plan import SavePlan
from smdebug.saving.recording.run_writer import RunWriter
from smdebug.saving.requests.stopping import StopCheck
from smdebug.saving.requests.zooming import Zoom


class PreparedRun(NamedTuple):
    """What is known once the first step begins."""

    plan: SavePlan
    writer: RunWriter | None
    """None: this process writes nothing."""
    stopping: StopCheck | None = None
    zoom: Zoom | None = None
    checkpoints: CheckpointNotes | None = None
    dry: bool = False
    measures_system: bool = False
    """Whether to keep system metrics, under the default plan."""

    @property
    def records(self) -> bool:
        """Whether tensors are saved."""
        return self.writer is not None and not self.dry
