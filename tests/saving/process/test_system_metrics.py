"""The resources that a training uses, measured cheaply and kept with the facts of saved steps."""

import ctypes

import numpy as np

import smdebug
from smdebug.saving.process import system_metrics
from smdebug.saving.process.gpu_metrics import Gpus
from smdebug.saving.process.system_metrics import SystemMetrics
from smdebug.trials import create_trial


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_time_between_steps_is_waiting_and_the_rest_is_not():
    clock = Clock()
    metrics = SystemMetrics(clock)
    metrics.begin_step()
    assert "step_seconds" not in metrics.sample()()  # nothing came before
    for _ in range(4):
        clock.now += 0.3
        metrics.end_step()
        clock.now += 0.1
        metrics.begin_step()
    found = metrics.sample()()
    assert found["step_seconds"] == 0.4
    assert found["waiting_seconds"] == 0.1
    assert found["cpu_percent"] >= 0
    clock.now += 1
    metrics.begin_step()  # a step whose end is not known waits for nothing
    assert metrics.sample()()["waiting_seconds"] == 0


def test_memory_is_read_behind_the_training():
    found = SystemMetrics().sample()()
    assert found["memory_bytes"] > 1 << 20
    assert 0 < found.get("machine_memory_percent", 50) < 100


def test_a_driver_that_fails_costs_the_gpus_alone(monkeypatch):
    class Failing:
        def read(self):
            raise OSError("the driver was reloaded")

    monkeypatch.setattr(system_metrics, "gpus", Failing)
    found = SystemMetrics().sample()()
    assert "gpus" not in found
    assert "memory_bytes" in found


def test_gpus_are_read_with_the_memory(monkeypatch):
    class Found:
        def read(self):
            return [{"name": "A100"}]

    class NoneVisible:
        def read(self):
            return []

    monkeypatch.setattr(system_metrics, "gpus", Found)
    assert SystemMetrics().sample()()["gpus"] == [{"name": "A100"}]
    for without in (NoneVisible, lambda: None):
        monkeypatch.setattr(system_metrics, "gpus", without)
        assert "gpus" not in SystemMetrics().sample()()


class Driver:
    """Answers as NVML does: a code, and the result behind a pointer."""

    def __init__(self, count=2, init=0):
        self.count, self.init = count, init

    def nvmlInit_v2(self):
        return self.init

    def nvmlDeviceGetCount_v2(self, place):
        place._obj.value = self.count
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, place):
        if index.value >= self.count:
            return 2
        place._obj.value = 1 + index.value
        return 0

    def nvmlDeviceGetHandleByUUID(self, name, place):
        place._obj.value = 9
        return 0 if name == b"GPU-9" else 6

    def nvmlDeviceGetName(self, handle, place, length):
        ctypes.memmove(place, b"A100-%d\0" % handle.value, 7)
        return 0

    def nvmlDeviceGetUtilizationRates(self, handle, place):
        place._obj.gpu = 40 + handle.value
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle, place):
        place._obj.total, place._obj.used = 80, handle.value
        return 0 if handle.value < 9 else 3


def names(environment, **driver):
    return [gpu["name"] for gpu in Gpus(Driver(**driver), environment).read()]


def test_gpus_are_those_that_the_process_may_use():
    assert names({}) == ["A100-1", "A100-2"]
    assert names({"CUDA_VISIBLE_DEVICES": "1"}) == ["A100-2"]
    assert names({"CUDA_VISIBLE_DEVICES": "GPU-9,7"}) == ["A100-9"]
    assert names({"CUDA_VISIBLE_DEVICES": ""}) == []
    assert names({"LOCAL_RANK": "1"}) == ["A100-2"]
    assert names({}, init=9) == []


def test_what_a_gpu_does_not_tell_is_left_out():
    (gpu,) = Gpus(Driver(), {"CUDA_VISIBLE_DEVICES": "0"}).read()
    assert gpu == {
        "name": "A100-1",
        "utilisation_percent": 41,
        "memory_bytes": 1,
        "memory_total_bytes": 80,
    }
    (other,) = Gpus(Driver(), {"CUDA_VISIBLE_DEVICES": "GPU-9"}).read()
    assert "memory_bytes" not in other


def trained(place, **options):
    with smdebug.Hook(str(place), **options) as hook:
        for _ in range(25):
            with hook.step():
                hook.record("loss", 1.0)
                hook.record("weight", np.ones(3))
    return create_trial(str(place))


def test_saved_steps_of_the_default_plan_keep_it(tmp_path):
    found = trained(tmp_path / "run").system_metrics()
    assert sorted(found) == [*range(11), 20]
    assert "step_seconds" not in found[0]
    for step in range(1, 11):
        assert found[step]["step_seconds"] >= found[step]["waiting_seconds"] >= 0
        assert found[step]["memory_bytes"] > 0


def test_a_hook_says_how_long_a_step_waited_for_the_one_before_it(tmp_path):
    now = [0.0]
    with smdebug.Hook(str(tmp_path / "run")) as hook:
        for step in range(4):
            with hook.step():
                if not step:
                    hook.recorder.system.clock = lambda: now[0]
                hook.record("weight", np.ones(3))
                now[0] += 2
            now[0] += 5  # the next batch is loaded
    found = create_trial(str(tmp_path / "run")).system_metrics()
    assert [(found[step]["step_seconds"], found[step]["waiting_seconds"]) for step in (2, 3)] == [(7, 5)] * 2


def test_it_is_off_by_a_flag(tmp_path):
    trial = trained(tmp_path / "run", system_metrics=False)
    assert trial.system_metrics() == {}
    assert "system" not in trial.facts(0)


def test_a_run_that_chooses_its_tensors_has_none(tmp_path):
    assert trained(tmp_path / "run", save_all=True).system_metrics() == {}


def test_memory_is_read_at_most_once_a_second(monkeypatch):
    now = [10.0]
    reads = []
    monkeypatch.setattr(system_metrics, "resident_bytes", lambda: reads.append(now[0]) or 1)
    metrics = SystemMetrics(lambda: now[0])
    for now[0] in (10.0, 10.4, 10.9, 11.0, 11.5):
        assert metrics.sample()()["memory_bytes"] == 1
    assert reads == [10.0, 11.0]
