"""Which steps and files of a run are out of reach of its rules, looked for whenever more may be known."""

from __future__ import annotations

from collections.abc import Sequence

from smdebug.plain_text import escaped
from smdebug.runs.left_out import unread_in_words
from smdebug.trials import Trial


class UnreadParts:
    """What of a run cannot be read, in words; "" if nothing is known to be."""

    def __init__(self, words: str = ""):
        self.words = words
        self._known: tuple[int, ...] = ()

    def look(self, trial: Trial, steps: Sequence[int], has_ended: bool, checked: int) -> bool:
        """Look again if there are more steps or damaged files; return whether the words changed.

        Event files are listed once all steps of a run that has ended are checked, if that costs no request.
        """
        is_listed = has_ended and checked >= len(steps) and trial.storage.concurrency == 1
        known = (len(steps), has_ended, len(trial.damaged_files), is_listed)
        if known == self._known:
            return False
        before, self._known = self.words, known
        with trial.refreshing(False):
            self.words = escaped(unread_in_words(trial, is_listed=is_listed))
        return self.words != before
