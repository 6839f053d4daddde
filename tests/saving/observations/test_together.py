"""Small tensors are measured together: what is kept is what measuring each alone gives."""

import numpy as np
import pytest

from smdebug import modes
from smdebug.saving.observations import observer as observing
from smdebug.saving.observations.observer import Observer
from smdebug.trials import create_trial
from tests.saving.observations.test_step_observations import clock_at
from tests.saving.packing import PackingAdapter, PackingHook


def array(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


def observer(**options):
    return Observer(PackingAdapter(), lambda message, kind: None, **options)


def observe_each(seen, tensors):
    for name, value in tensors.items():
        seen.observe(name, value)


def observe_together(seen, tensors):
    for name, value in seen.observe_together(tensors.items()):
        seen.observe(name, value)


def kept(seen, step):
    """What is kept of the step, as plain data."""
    return {
        name: (values.dtype, values.tolist())
        for name, make, _ in seen.hand_over(clock_at(step)).tensors()
        for values in [np.nan_to_num(np.asarray(make()), nan=-99)]
    }


FIRST = {"a.weight": array(4, 3), "a.bias": array(3), "b.weight": array(2, 2)}
STEPS = {
    "the same again": ({name: value * 2 for name, value in FIRST.items()}, True),
    "of other shapes": ({**FIRST, "a.bias": array(5)}, False),
    "of another type": ({**FIRST, "a.bias": array(3, dtype=np.float64)}, False),
    "one is too large": ({**FIRST, "a.bias": array(9000)}, False),
    "one is a number": ({**FIRST, "a.bias": array(1)}, False),
    "a new one": ({**FIRST, "c.weight": array(7)}, False),
    "one alone": ({"b.weight": array(2, 2, seed=1)}, True),
    "in another order": (dict(reversed(FIRST.items())), True),
    "two kinds": ({"a.weight": array(4, 3), "gradient/a.weight": array(4, 3)}, False),
    "none": ({}, False),
    "with what is no number": ({**FIRST, "a.bias": array(3) * np.nan}, True),
}


@pytest.mark.parametrize("digests_only", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_a_group_is_what_each_tensor_is(name, digests_only):
    tensors, is_group = STEPS[name]
    alone, together = (observer(digests_only=digests_only) for _ in "ab")
    observe_each(alone, FIRST)
    observe_together(together, FIRST)
    assert kept(together, 0) == kept(alone, 0)

    observe_each(alone, tensors)
    grouped = together.observe_group(tuple(tensors), list(tensors.values()))
    if not grouped:
        observe_together(together, tensors)
    assert grouped is is_group
    assert kept(together, 1) == kept(alone, 1)

    grouped = together.observe_group(tuple(FIRST), list(FIRST.values()))
    if not grouped:
        observe_together(together, FIRST)
    observe_each(alone, FIRST)
    assert kept(together, 2) == kept(alone, 2), "what came between is forgotten"


def test_gradients_have_no_digest_and_those_who_keep_digests_alone_keep_none_of_them():
    gradients = {"gradient/a": array(3), "gradient/b": array(2, 2)}
    whole, digests = observer(), observer(digests_only=True)
    for seen in (whole, digests):
        observe_together(seen, gradients)
        kept(seen, 0)
    assert whole.observe_group(tuple(gradients), list(gradients.values()))
    assert not digests.observe_group(tuple(gradients), list(gradients.values()))
    assert "smdebug/statistics/gradients" in kept(whole, 1)
    assert not any("digest" in name for name in kept(whole, 2))
    assert kept(digests, 1) == {}


def test_tensors_that_nobody_has_observed_yet_are_no_group():
    seen = observer()
    assert not seen.observe_group(tuple(FIRST), list(FIRST.values()))
    assert seen.packed(tuple(FIRST), list(FIRST.values())) is None
    seen.observe("a.weight", FIRST["a.weight"])
    assert not seen.observe_group(tuple(FIRST), list(FIRST.values())), "one of three is known"


def test_the_change_of_a_group_is_observed_from_what_it_was():
    names, before = ("update/a", "update/b"), [array(3), array(2, 2)]
    after = [value + 0.5 for value in before]
    seen, alone = observer(), observer()
    observe_together(seen, dict(zip(names, before, strict=True)))
    kept(seen, 0)
    packed = seen.packed(names, before)
    assert packed.tolist() == [*before[0], *before[1].reshape(-1)]
    assert seen.observe_group(names, after, packed)
    observe_each(alone, {name: late - early for name, late, early in zip(names, after, before, strict=True)})
    changes = kept(seen, 1)
    assert changes["smdebug/statistics/updates"] == kept(alone, 1)["smdebug/statistics/updates"]


def test_a_tensor_that_comes_again_is_measured_as_before_and_a_number_belongs_to_its_series():
    seen, alone = observer(), observer()
    assert not seen.observe_again("a.weight", FIRST["a.weight"]), "it is not known yet"
    observe_each(seen, {**FIRST, "number": array(1)})
    kept(seen, 0)
    assert seen.observe_again("a.weight", FIRST["a.weight"])
    assert not seen.observe_again("a.bias", array(5)), "its shape is another one"
    assert not seen.observe_again("a.bias", array(3, dtype=np.float64))
    assert not seen.observe_again("a.bias", [1.0, 2.0, 3.0])
    assert not seen.observe_again("number", array(1))
    observe_each(alone, FIRST)
    kept(alone, 0)
    alone.observe("a.weight", FIRST["a.weight"])
    again, measured = kept(seen, 1), kept(alone, 1)
    for name in ("smdebug/statistics/parameters", "smdebug/digests/parameters"):
        assert again[name][1][0] == measured[name][1][0]


def test_names_and_groups_that_change_at_every_step_are_forgotten(monkeypatch):
    monkeypatch.setattr(observing, "NAMES_REMEMBERED", 4)
    monkeypatch.setattr(observing, "GROUPS_REMEMBERED", 2)
    seen = observer()
    for number in range(10):
        tensors = {f"a{number}": array(3), f"b{number}": array(2)}
        observe_together(seen, tensors)
        assert seen.observe_group(tuple(tensors), list(tensors.values()))
        assert seen.observe_group(tuple(tensors), list(tensors.values()))
        assert len(seen._known) <= 4
        assert len(seen._groups) <= 2


def record(hook, tensors):
    for name, value in hook.recorder.observe_together(list(tensors.items())):
        hook.record(name, value)


def test_a_hook_saves_what_was_measured_together_as_if_each_had_been_recorded(tmp_path):
    def tensors(step):
        return {**{name: value * step for name, value in FIRST.items()}, "loss": np.float32(1 / (1 + step))}

    def parameters(step):
        return {name: value for name, value in tensors(step).items() if name != "loss"}

    with PackingHook(tmp_path / "together") as together, PackingHook(tmp_path / "alone") as alone:
        for hook in (together, alone):
            hook.set_mode(modes.TRAIN)
        for step in range(25):
            with together.step(), alone.step():
                record(together, tensors(step) if step % 2 else parameters(step))
                if not step % 2:
                    together.record("loss", tensors(step)["loss"])
                alone.record_all(tensors(step))
    found, expected = (create_trial(str(tmp_path / name)) for name in ("together", "alone"))
    saved = [*range(11), 20]
    assert found.steps() == expected.steps() == [*saved, 24], "the last one has the losses since then"
    for step in saved:
        rows, alone_rows = (trial.observations.statistics(step) for trial in (found, expected))
        assert sorted(rows.names) == sorted(alone_rows.names)
        for name in FIRST:
            assert dict(rows.row(name)) == pytest.approx(dict(alone_rows.row(name)), nan_ok=True)
        assert found.tensor("loss").value(step) == expected.tensor("loss").value(step)
    losses = [trial.observations.series("loss").values.tolist() for trial in (found, expected)]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 25


def test_only_parameters_that_are_all_observed_are_a_group_of_the_hook(tmp_path):
    with PackingHook(tmp_path / "run") as hook:
        assert not hook.recorder.observe_group(tuple(FIRST), list(FIRST.values())), "no step runs"
        for _ in range(13):
            with hook.step():
                record(hook, FIRST)
                grouped = hook.recorder.observe_group(tuple(FIRST), list(FIRST.values()))
                assert grouped is (int(hook.step) <= 10)
                losses = {"loss_a": array(2), "loss_b": array(2)}
                record(hook, losses)
                assert not hook.recorder.observe_group(tuple(losses), list(losses.values())), "they are saved"
    chosen = PackingHook(tmp_path / "chosen", save_all=True)
    with chosen, chosen.step():
        assert not chosen.recorder.observe_group(tuple(FIRST), list(FIRST.values()))
        assert len(chosen.recorder.observe_together(list(FIRST.items()))) == len(FIRST)


def test_what_is_left_to_record_is_what_could_not_be_measured_together(tmp_path):
    with PackingHook(tmp_path / "run") as hook, hook.step():
        left = hook.recorder.observe_together([*FIRST.items(), ("loss", np.float32(0.5))])
        assert [name for name, _ in left] == ["loss"]
