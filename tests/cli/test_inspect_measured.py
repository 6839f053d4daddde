"""`smdebug inspect` on a run that was measured."""

import smdebug
from smdebug import modes
from tests.cli.processes import in_a_shell


def test_measured_tensors_and_the_scalars_of_every_step_are_summarised(tmp_path):
    hook = smdebug.Hook(tmp_path / "run")
    hook.observes = True
    with hook:
        for step in range(12):
            with hook.step(modes.TRAIN):
                hook.record("loss", 12.0 - step)
                hook.record("weight", [1.0, float(step)])
    done = in_a_shell("inspect", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["parameters", "1", "11"] in lines
    assert ["loss", "12", "12", "1"] in [line[:4] for line in lines]
    assert "smdebug/" not in done.stdout
