"""Which problems of a run a tool has already sent alerts about, in a file beside the run."""

from __future__ import annotations

import json
from typing import Any

from smdebug.exceptions import SMDebugError
from smdebug.files.names import SENT_ALERTS
from smdebug.secrets.texts import redacted_line
from smdebug.sinks.records import IssueRecord
from smdebug.storage import open_storage

_MOST = 1000  # of one tool; a run has far fewer


class SentAlerts:
    """The alerts of one place of a tool, such as a project. Without the file, none was sent."""

    def __init__(self, run: str, place: str):
        self._run = run
        self._place = place
        self.problem = ""
        """Why an alert could not be noted; it is then sent again by another export."""

    def has(self, record: IssueRecord) -> bool:
        """Return whether an alert about this opening of the problem was sent."""
        return _name(record) in self._read().get(self._place, ())

    def add(self, record: IssueRecord) -> None:
        """Note that the alert was sent."""
        found = self._read()
        mine = [*found.get(self._place, ()), _name(record)]
        try:
            open_storage(self._run).write(
                SENT_ALERTS, (json.dumps({**found, self._place: mine[-_MOST:]}, indent=1) + "\n").encode()
            )
        except SMDebugError as error:
            self.problem = (
                f"It is not noted which alerts were sent, so they may be sent again: {redacted_line(error)}"
            )

    def _read(self) -> dict[str, Any]:
        """Return what is noted: nothing if the file is damaged, as two alerts are better than none."""
        try:
            found = json.loads(open_storage(self._run).read(SENT_ALERTS))
            return {str(place): list(map(str, names)) for place, names in found.items()}
        except (SMDebugError, ValueError, TypeError, AttributeError):
            return {}


def _name(record: IssueRecord) -> str:
    """The problem and its first step: a problem that comes back later is another one."""
    return f"{record.key} @{record.issue.since}"
