"""Steps that were computed twice, as they may have been written."""

from types import SimpleNamespace

import pytest

from smdebug import modes
from smdebug.rules.memory.state import restore_state, save_state
from smdebug_default_rules.values.computed_twice import NOT_ASKED, ComputedTwice

EQUAL = {"equal": 8}
SAME = {"outputs": EQUAL, "gradients": EQUAL}
DIFFERS = {"first": "fc1", "tensors": 8, "replays": 5, "as_before": 0, "results": 1}
ONCE = {"outputs": DIFFERS, "gradients": {**DIFFERS, "first": "gradient/Net_fc1.weight"}}
VARYING = {
    "outputs": EQUAL,
    "gradients": {**DIFFERS, "first": "gradient/Net_fc1.weight", "as_before": 2, "results": 3},
}
STORED = {"stored_weights": EQUAL, "stored_gradients": EQUAL, "stored_state": EQUAL, "update": EQUAL}
KEPT = {**STORED, **SAME}
FLIPPED = {
    "first": "Net_fc1.weight",
    "tensors": 8,
    "changed": 1,
    "form": "bit",
    "values": 1,
    "size": 2048,
    "before": 0.5,
    "after": 2.0,
}
OF_STATE = {**FLIPPED, "first": "exp_avg of Net_fc1.weight"}
RUN = {
    "first": "Net_fc1.weight",
    "tensors": 8,
    "changed": 1,
    "form": "run",
    "values": 600,
    "size": 2048,
    "place": 70,
}
CHANGES = (VARYING, {"stored_weights": FLIPPED}, {"stored_gradients": RUN}, {"stored_state": OF_STATE})
REWRITTEN = {"first": "Net_fc1.weight", "tensors": 8, "changed": 5, "form": "other"}


class Written:
    """What workers have noted: by step, the fact of each."""

    has_facts = True
    expected_workers = 2

    def __init__(self, **steps):
        self.steps = {int(step.strip("_")): dict(of) for step, of in steps.items()}

    def computed_twice(self, step):
        return self.steps.get(step, {})


def twice(**steps):
    """What the first of some workers has noted."""
    return Written(**{step: {"worker_0": fact} for step, fact in steps.items()})


def after_two(change):
    """Three steps of a worker, of which the last is not like the others."""
    return twice(_1=KEPT, _2=KEPT, _3={**KEPT, **change})


def rule_on(written):
    return ComputedTwice(SimpleNamespace(observations=written))


def check(rule, step):
    rule.looked, rule.not_checked = True, None
    return [*rule.check(SimpleNamespace(step=step, mode=modes.TRAIN))]


def found(written, *steps):
    rule = rule_on(written)
    return [(step, each.worker, each.tensor) for step in steps for each in check(rule, step)]


def test_the_first_module_is_named_and_not_the_gradients_that_follow_from_it():
    assert found(twice(_1=SAME, _2=SAME, _3=ONCE), *range(5)) == [(3, "worker_0", "fc1_output_0")]
    assert found(twice(_1=SAME, _2=SAME, _3=VARYING), *range(5)) == [
        (3, "worker_0", "gradient/Net_fc1.weight")
    ]


@pytest.mark.parametrize("before", [{}, {"_1": SAME}, {"_1": ONCE, "_2": SAME}])
def test_a_step_is_judged_only_if_two_before_it_were_equal(before):
    written = twice(**before, _3=ONCE)
    rule = rule_on(written)
    for step in (1, 2):
        check(rule, step)
    assert check(rule, 3) == []
    assert not rule.looked
    assert rule.not_checked == "computed twice, outputs differ from the first step on"


def test_gradients_that_never_are_equal_do_not_keep_outputs_from_being_judged():
    """A loss that contains weights gives them gradients of its own."""
    own = {"outputs": EQUAL, "gradients": DIFFERS}
    rule = rule_on(twice(_1=own, _2=own, _3=own, _4=ONCE))
    assert [check(rule, step) for step in (1, 2, 3)] == [[], [], []]
    assert rule.looked
    assert rule.not_checked is None
    assert [each.tensor for each in check(rule, 4)] == ["fc1_output_0"]


def test_each_worker_is_judged_by_its_own_steps_even_if_its_file_comes_late():
    written = Written(_1={"worker_0": SAME}, _2={"worker_0": SAME}, _3={"worker_0": SAME})
    rule = rule_on(written)
    for step, fact in ((1, SAME), (2, SAME), (3, ONCE)):
        assert check(rule, step) == []
        written.steps[step]["worker_1"] = fact
    assert [(each.worker, each.since) for each in check(rule, 4)] == [("worker_1", 3)]
    assert check(rule, 5) == []


def test_what_arrives_after_the_last_step_is_judged_at_the_end():
    written = Written(_1={"worker_1": SAME}, _2={"worker_1": SAME}, _3={})
    rule = rule_on(written)
    for step in (1, 2, 3):
        check(rule, step)
    written.steps[3]["worker_1"] = ONCE
    assert rule.invoke_at_end(3)
    assert [each.worker for each in rule.findings] == ["worker_1"]


def test_it_says_why_nothing_was_compared():
    rule = rule_on(twice(_2={"not": "the model is compiled"}))
    check(rule, 1)
    assert (rule.looked, rule.not_checked) == (False, NOT_ASKED)
    check(rule, 2)
    assert (rule.looked, rule.not_checked) == (False, "no step was computed twice: the model is compiled")


def test_what_it_has_seen_survives_its_process():
    written = twice(_1=SAME, _2=SAME, _3=ONCE)
    first, second = rule_on(written), rule_on(written)
    for step in (1, 2):
        check(first, step)
    restore_state(second, save_state(first))
    assert [each.since for each in check(second, 3)] == [3]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"outputs": 3},
        {"outputs": {}},
        {"not": 7},
        {"outputs": {**DIFFERS, "replays": "5"}},
        {"outputs": {**DIFFERS, "results": True}},
        {"outputs": {"first": ["x"], "as_before": None}},
    ],
)
def test_facts_of_another_form_are_no_finding(wrong):
    assert found(twice(_1=SAME, _2=SAME, _3=wrong), 1, 2, 3) == []


@pytest.mark.parametrize(
    ("change", "tensor"),
    [
        (CHANGES[1], "Net_fc1.weight"),
        (CHANGES[2], "gradient/Net_fc1.weight"),
        (CHANGES[3], "Net_fc1.weight"),
    ],
)
def test_what_changed_in_memory_is_named(change, tensor):
    assert found(after_two(change), *range(5)) == [(3, "worker_0", tensor)]


def test_of_what_changed_in_memory_the_wrong_results_follow():
    rule = rule_on(after_two({**ONCE, "stored_weights": FLIPPED}))
    (finding,) = [each for step in range(4) for each in check(rule, step)]
    assert finding.title == "Weights on worker_0 changed in memory"


def test_an_update_that_differs_is_named():
    wrong = {**KEPT, "update": {**DIFFERS, "first": "exp_avg of Net_fc1.weight", "replays": 2}}
    assert found(twice(_1=KEPT, _2=KEPT, _3=wrong), *range(5)) == [(3, "worker_0", "Net_fc1.weight")]
    assert found(twice(_1=KEPT, _2=wrong, _3=wrong), *range(5)) == []


@pytest.mark.parametrize("change", [REWRITTEN, {**FLIPPED, "form": "other"}])
def test_what_a_program_has_written_is_not_judged_any_more(change):
    before = {**KEPT, "stored_weights": change}
    after = {**KEPT, "stored_weights": FLIPPED}
    assert found(twice(_1=KEPT, _2=KEPT, _3=before, _4=KEPT, _5=after), *range(7)) == []
    others = {**KEPT, "stored_state": OF_STATE}
    assert found(twice(_1=KEPT, _2=KEPT, _3=before, _4=KEPT, _5=others), *range(7)) == [
        (5, "worker_0", "Net_fc1.weight")
    ]


def test_a_change_before_two_steps_were_equal_is_the_program_s():
    flipped = {**KEPT, "stored_weights": FLIPPED}
    assert found(twice(_1=KEPT, _2=flipped, _3=KEPT, _4=KEPT, _5=flipped), *range(7)) == []


def test_a_program_of_one_worker_says_nothing_of_another():
    first, last = {**KEPT, "stored_weights": REWRITTEN}, {**KEPT, "stored_weights": FLIPPED}
    written = Written(
        _1={"worker_0": KEPT, "worker_1": KEPT},
        _2={"worker_0": first, "worker_1": KEPT},
        _3={"worker_0": last, "worker_1": last},
    )
    assert found(written, *range(5)) == [(3, "worker_1", "Net_fc1.weight")]


def test_what_is_stored_is_judged_where_nothing_can_be_computed_twice():
    compiled = {**STORED, "not": "the model is compiled"}
    rule = rule_on(twice(_1=compiled, _2=compiled, _3={**compiled, "stored_weights": FLIPPED}))
    assert check(rule, 1) == []
    assert rule.not_checked == "no step was computed twice: the model is compiled"
    assert check(rule, 2) == []
    assert [each.since for each in check(rule, 3)] == [3]
    assert rule.looked


def test_a_step_of_which_outputs_vary_is_not_checked_though_what_is_stored_is_equal():
    rule = rule_on(twice(_1={**STORED, **ONCE}))
    assert check(rule, 1) == []
    assert not rule.looked
    assert rule.not_checked == "computed twice, outputs differ from the first step on"


@pytest.mark.parametrize(
    "wrong",
    [
        {"stored_weights": 3},
        {"stored_weights": {}},
        {"stored_state": {**FLIPPED, "form": 7}},
        {"stored_gradients": {**FLIPPED, "values": "1"}},
        {"stored_weights": {**FLIPPED, "size": None}},
    ],
)
def test_changes_of_another_form_are_no_finding(wrong):
    assert found(after_two(wrong), 1, 2, 3) == []


@pytest.mark.parametrize("gone", ["before", "after"])
def test_a_flip_to_what_is_no_number_is_named_without_it(gone):
    change = {name: value for name, value in FLIPPED.items() if name != gone}
    rule = rule_on(after_two({"stored_weights": change}))
    (finding,) = [each for step in range(4) for each in check(rule, step)]
    assert "a number that is not finite" in finding.why[0]
