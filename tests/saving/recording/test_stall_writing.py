"""Where a rank stands is written beside its run, if that run is written at all."""

import smdebug
from smdebug.files.notes.stalls import ENDED, STANDS, Stall
from smdebug.saving.recording.stall_writing import end_earlier_stall, write_stall
from smdebug.trials import create_trial

STALL = Stall("", STANDS, 4, "forward", 1e9, 70.0, 60.0)


def test_a_stall_names_its_worker_and_attempt(out_dir):
    with smdebug.Hook(str(out_dir)) as hook:
        write_stall(hook.recorder, STALL)
        with hook.step():
            hook.record("loss", 1.0)
        hook.flush()
        assert create_trial(str(out_dir)).stalls() == {}, "there was no run yet"
        write_stall(hook.recorder, STALL)
        (stall,) = create_trial(str(out_dir)).stalls().values()
        attempt = hook.recorder.run.writer.attempt
    assert (stall.worker, stall.state, stall.step) == ("worker_0", STANDS, 4)
    assert (stall.run_id, stall.training_run) == (attempt.run_id, attempt.training_run)


def test_what_an_earlier_attempt_has_said_is_over_with_the_next(out_dir):
    with smdebug.Hook(str(out_dir)) as hook, hook.step():
        hook.record("loss", 1.0)
        end_earlier_stall(hook.recorder)
        assert not list(out_dir.rglob("*stall*")), "nothing was said"
        write_stall(hook.recorder, STALL)
        end_earlier_stall(hook.recorder)
        (file,) = [path for path in out_dir.rglob("*") if path.is_file() and "stall" in str(path)]
        assert ENDED in file.read_text()


def test_a_run_that_is_not_written_says_nothing(out_dir):
    with smdebug.Hook(str(out_dir), dry_run=True) as hook, hook.step():
        hook.record("loss", 1.0)
        write_stall(hook.recorder, STALL)
        assert not list(out_dir.rglob("*stall*"))
