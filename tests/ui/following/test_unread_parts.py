"""What of a run cannot be read is looked for when more may be known, and said when it changes."""

from __future__ import annotations

from smdebug.runs.opening import open_run
from smdebug.ui.following.unread_parts import UnreadParts
from tests.ui.written_runs import WrittenRun


def test_missing_steps_are_said_once_and_again_when_there_are_more(tmp_path):
    written = WrittenRun(tmp_path / "a").write(4)
    written.hook.flush()
    trial = open_run(tmp_path / "a")
    unread = UnreadParts()
    assert not unread.look(trial, trial.steps(), has_ended=False, checked=0)
    assert unread.words == ""
    written.write(3, end=True)
    (lost,) = (tmp_path / "a" / "index" / "000000000").glob(f"{5:012}_*")
    lost.unlink()
    trial.refresh_data()
    assert unread.look(trial, trial.steps(), has_ended=True, checked=4)
    said = unread.words
    assert "5" in said
    assert not unread.look(trial, trial.steps(), has_ended=True, checked=5)  # nothing more is known
    assert unread.words == said
