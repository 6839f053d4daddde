"""An issue opens once and is resolved once; rules keep their state between invocations."""

from __future__ import annotations

from smdebug.mode_keys import ModeKeys
from tests.functions.deployed_settings import settings as stack_settings
from tests.functions.promises.runs import RUN, found_steps
from tests.functions.saver import FAILING, HEALTHY, Saver
from tests.functions.small_world import SmallWorld


def test_an_issue_opens_once_and_is_resolved_once(small):
    worker = Saver(small.place()).begin()
    for step, tensors in enumerate([HEALTHY, FAILING, FAILING, HEALTHY, HEALTHY, FAILING]):
        worker.save(step, tensors)
        small.settle()
    assert found_steps(small) == [1, 5]
    (resolved,) = small.details("Rule Issue Resolved")
    assert resolved["step"] == 3
    assert resolved["issue"]["since"] == 1


def test_a_step_without_the_tensor_does_not_resolve_an_issue():
    small = SmallWorld(stack_settings(default_rules=("VanishingGradient",)))
    worker = Saver(small.place()).begin()
    worker.save(0, {"gradient/fc": 1e-9})
    worker.save(1, {"accuracy": 0.5}, ModeKeys.EVAL, 0)
    small.settle()
    assert found_steps(small) == [0]
    assert small.details("Rule Issue Resolved") == []


def test_what_a_rule_remembers_survives_between_invocations():
    small = SmallWorld(stack_settings(default_rules=("LossNotDecreasing",)))
    place = small.place()
    place.write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "loss", "rule": "LossNotDecreasing",'
        b' "parameters": {"num_steps": "2", "tensor_regex": "loss"}}]}',
    )
    worker = Saver(place).begin()
    for step, loss in enumerate([5.0, 4.0, 3.0, 3.0, 3.0, 3.0]):
        worker.save(step, {"loss": loss})
        small.settle()
    assert found_steps(small) == [4]
    assert small.index.groups.get(RUN, "builtin").rules[0].state


def test_a_large_memory_is_kept_in_an_object_of_its_own(monkeypatch):
    monkeypatch.setattr("functions.evaluation.rule_bench.LARGEST_INLINE_STATE", 10)
    small = SmallWorld()
    small.place().write(
        "rules.json",
        b'{"version": 1, "rules": [{"name": "loss", "rule": "LossNotDecreasing",'
        b' "parameters": {"num_steps": "2", "tensor_regex": "loss"}}]}',
    )
    worker = Saver(small.place()).begin()
    for step, loss in enumerate([5.0, 4.0, 3.0, 3.0, 3.0, 3.0]):
        worker.save(step, {"loss": loss})
        small.settle()
    assert found_steps(small) == [4]
    (rule,) = small.index.groups.get(RUN, "builtin").rules
    assert rule.state == b""
    assert rule.state_key.startswith("state/builtin/")
    assert rule.state_key.isascii()
    assert small.place().exists(rule.state_key)


def test_what_is_known_of_a_run_is_forgotten_long_after_its_last_change(small):
    worker = Saver(small.place()).begin()
    worker.save(0, FAILING)
    small.settle()
    small.clock.time += 1000
    worker.save(1, HEALTHY)
    small.settle()
    now = small.clock.now()
    expiry = {item["sk"]: item["expires"] - now for item in small.items.query(f"RUN#{RUN}")}
    assert all(90 * 86_400 - 1001 <= left <= 90 * 86_400 for left in expiry.values())
    assert expiry["GROUP#builtin"] == 90 * 86_400
