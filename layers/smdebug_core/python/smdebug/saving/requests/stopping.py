"""Stopping a training between two steps, once everything saved is written."""

from __future__ import annotations

from collections.abc import Callable

from smdebug.exceptions import TrainingStopped
from smdebug.logger import get_logger
from smdebug.saving.process.process_end import end_without_traceback
from smdebug.saving.requests.control import StopRequest, StopWatch

OnStop = Callable[[TrainingStopped], object]


class StopCheck:
    """Decides between steps whether the training has to stop, until it has, or has failed."""

    def __init__(self, watch: StopWatch, on_stop: Callable[[], OnStop | None]):
        self._watch: StopWatch | None = watch
        self._on_stop = on_stop

    @property
    def request(self) -> StopRequest | None:
        """The request to stop, if one is known and was not followed yet."""
        return None if self._watch is None else self._watch.request

    @property
    def every_step(self) -> bool:
        """Whether to ask after each step, and not only after those that were saved."""
        return self._watch is not None and self._watch.every_step

    def stop_after(self, step: int, *, is_save_step: bool) -> TrainingStopped | None:
        """Return how the training stops if `step`, which has just ended, is its last."""
        watch = self._watch
        if watch is None:
            return None
        try:
            if not watch.is_time(step, is_save_step=is_save_step):
                return None
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self._watch = None
            get_logger().warning("Stop requests are ignored from now on: %r", error)
            return None
        self._watch = None  # a training that catches the exception continues
        request = watch.request or StopRequest()
        stopped = TrainingStopped(request.reason, step, request.finding_id)
        get_logger().warning("%s", stopped)
        end_without_traceback()
        return stopped

    def notify(self, stopped: TrainingStopped) -> None:
        """Call the user's `on_stop`."""
        on_stop = self._on_stop()
        if on_stop is None:
            return
        try:
            on_stop(stopped)
        except Exception as error:  # noqa: BLE001 - the user's own code
            get_logger().exception("on_stop failed: %s", error)
