"""Zooming in: on request, tensors are saved whole for the next steps of training.

The request is an object beside the run (`files.zoom_request`), which each worker that saves reads at steps of
the plan, the same for all. Workers do not wait for each other: each zooms from the step at which it has read
it, which is mostly the same one.
"""

from __future__ import annotations

from collections.abc import Callable

from smdebug.config.patterns import searcher
from smdebug.exceptions import SMDebugError
from smdebug.files.names import ZOOM_KEY
from smdebug.files.zoom_request import ZoomRequest
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.saving.place.attempt import StartedAttempt
from smdebug.saving.planning.save_plan import NO_MEMBERS, Members, SavePlan
from smdebug.saving.planning.step_clock import StepClock
from smdebug.saving.requests.control_file import LOOK_EVERY, ControlFile
from smdebug.storage.base import Storage

COLLECTION = "zoom"
"""The collection of the tensors that were saved whole on request."""
MOST_BYTES = 64 << 20
"""The bytes that zooming adds to one step of one worker."""


class Zoom:
    """The zooming of one worker."""

    def __init__(
        self,
        storage: Storage,
        attempt: StartedAttempt,
        plan: SavePlan,
        *,
        worker: str,
        is_chief: bool,
        note_saved: Callable[[str], object],
        look_every: float = LOOK_EVERY,
    ):
        self._file = ControlFile(
            storage,
            ZOOM_KEY,
            attempt,
            what="Zoom requests",
            ignored="To zoom into this one, write it again with another text.",
            look_every=look_every,
        )
        self._plan = plan
        self._worker = worker
        self._is_chief = is_chief
        self._note_saved = note_saved
        self._handled: bytes | None = None
        self._request: ZoomRequest | None = None
        self._members: Members = NO_MEMBERS
        self._left = 0
        self._bytes = 0
        self._saved: set[str] = set()
        self._left_out: dict[str, int] = {}
        self._unmatched: set[str] = set()

    def widened(self, due: Members, clock: StepClock) -> Members:
        """Return what is due at a step that begins, with what is zoomed into."""
        mode = clock.mode
        if mode is ModeKeys.EVAL or mode is ModeKeys.PREDICT:
            return due
        if self._request is None and not self._plan.of_mode(mode).asks_at(clock.mode_step):
            return due
        self._read()
        if self._request is None:
            return due
        if self._left == 0:
            self.finish()
            return due
        self._left -= 1
        self._bytes = 0
        return due | self._plan.observed_members | self._members

    def admits(self, name: str, size: int, *, is_whole: bool) -> bool:
        """Return whether to save a tensor that the request names, and note the decision."""
        request = self._request
        if request is None or (is_whole and not self._is_chief and not request.workers):
            return False
        if self._bytes + size > MOST_BYTES:
            self._left_out[name] = size
            return False
        self._bytes += size
        if name not in self._saved:
            self._saved.add(name)
            self._note_saved(name)
        return True

    def finish(self) -> None:
        """End the zooming; log what was not saved."""
        request, self._request = self._request, None
        if request is None:
            return
        if self._left_out:
            names = sorted(self._left_out)
            get_logger().warning(
                "Left out of the zoom, which adds at most %d MB to a step: %s. Name fewer tensors.",
                MOST_BYTES >> 20,
                _listed(names),
            )
        if self._unmatched and self._is_chief:
            get_logger().warning(
                "No tensor has a name that matches %s, so the zoom saved none of it",
                _listed(sorted(self._unmatched)),
            )

    def _read(self) -> None:
        content = self._file.look()
        if content is None or content == self._handled:
            return
        self._handled = content
        try:
            request = ZoomRequest.parse(content)
            searches = {pattern: searcher(pattern) for pattern in request.tensors}
        except (ValueError, SMDebugError) as problem:
            get_logger().warning("%s is not a zoom request and is ignored: %s", ZOOM_KEY, problem)
            return
        self.finish()
        if request.workers and self._worker not in request.workers:
            return
        self._request, self._left = request, request.steps
        self._saved, self._left_out = set(), {}
        self._unmatched = set(request.tensors)

        def is_named(name: str) -> bool:
            matching = [pattern for pattern, search in searches.items() if _matches(search, name)]
            self._unmatched.difference_update(matching)
            return bool(matching)

        self._members = self._plan.zoom_into(is_named)
        because = f": {request.reason}" if request.reason else ""
        get_logger().info(
            "Saving tensors that match %s whole for %d steps%s",
            _listed(list(request.tensors)),
            request.steps,
            because,
        )


def _matches(search: Callable[[str], object], name: str) -> bool:
    try:
        return search(name) is not None
    except SMDebugError:  # the name is too long for the pattern
        return False


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
