from __future__ import annotations

from dataclasses import replace

import numpy as np

from smdebug.rules import Finding, restore_state, save_state
from smdebug.rules.evidence import MOST_REMEMBERED, Judged, TensorRule
from smdebug.rules.measurements import measure
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, found_data_at


class TooLarge(TensorRule):
    def judged(self, step):
        for seen in measure(self.base_trial, self.base_trial.tensor_names(step=step), step):
            if seen.skipped:
                yield Judged(seen.name, seen.worker, skipped=seen.skipped)
                continue
            largest = seen.statistics.max
            finding = Finding(seen.name, "max", largest, 10.0) if largest > 10 else None
            yield Judged(seen.name, seen.worker, finding, badness=largest)


def history(found):
    return {
        step: [
            (
                finding.tensor,
                finding.details.get("found_since"),
                finding.details.get("last_good_step"),
            )
            for finding in findings
        ]
        for step, findings in found.items()
    }


def steps_of(**values):
    steps = {}
    for name, by_step in values.items():
        for step, value in by_step.items():
            steps.setdefault(step, {})[name] = np.float32([value])
    return dict(sorted(steps.items()))


def test_a_finding_names_its_first_step_and_the_last_good_one():
    run = made_run(steps_of(a={0: 1, 3: 20, 5: 30, 6: 1, 7: 40}, b={5: 50, 7: 60})).trial()
    found = findings_by_step(TooLarge(run))
    assert history(found) == {
        3: [("a", 3, 0)],
        5: [("b", 5, None), ("a", 3, 0)],
        7: [("b", 5, None), ("a", 7, 6)],
    }
    assert [str(finding) for finding in found[7]] == [
        "b: max 60 (limit 10), since step 5",
        "a: max 40 (limit 10)",
    ]


class OutOfRange(TensorRule):
    """Two limits, and a tensor may be beyond both of them."""

    def judged(self, step):
        for seen in measure(self.base_trial, self.base_trial.tensor_names(step=step), step):
            numbers = seen.statistics
            found = [Finding(statistic="max", value=numbers.max, threshold=10.0)] * (numbers.max > 10)
            found += [Finding(statistic="min", value=numbers.min, threshold=0.0)] * (numbers.min < 0)
            for finding in found or [None]:
                yield Judged(seen.name, seen.worker, finding)


def test_one_failure_after_another_of_the_same_tensor_has_a_beginning_of_its_own():
    run = MadeRun()
    for step, values in enumerate([[1, 1], [20, 1], [20, -1], [1, -1], [20, -1], [1, 1], [1, -1]]):
        run.save(step, {"a": np.float32(values)})
    history_by_step = {
        step: {(finding.statistic, *finding.details.values()) for finding in findings}
        for step, findings in findings_by_step(OutOfRange(run.end().trial())).items()
    }
    assert history_by_step == {
        1: {("max", 1, 0)},
        2: {("max", 1, 0), ("min", 2, 0)},
        3: {("min", 2, 0)},
        4: {("max", 4, 0), ("min", 2, 0)},
        6: {("min", 6, 5)},
    }


def test_a_step_that_the_rule_was_not_asked_about_is_not_called_good():
    run = made_run(steps_of(a={0: 1, 3: 20, 5: 30})).trial()
    assert history(findings_by_step(TooLarge(run), start_step=3)) == {
        3: [("a", 3, None)],
        5: [("a", 3, None)],
    }


def test_a_step_at_which_a_tensor_was_skipped_is_not_called_good():
    values = {0: np.float32([1]), 1: np.zeros(0, np.float32), 2: np.float32([20])}
    run = made_run({step: {"a": value, "b": np.float32([1])} for step, value in values.items()})
    assert history(findings_by_step(TooLarge(run.trial()))) == {2: [("a", 2, 0)]}

    never_seen = made_run({0: {"a": np.zeros(0, np.float32)}, 1: {"a": np.float32([20])}})
    assert history(findings_by_step(TooLarge(never_seen.trial()))) == {1: [("a", 1, None)]}


def test_a_step_at_which_another_worker_wrote_a_tensor_is_not_called_good():
    run = MadeRun(workers=2)
    for step, value in enumerate([1, None, 20]):
        run.save(step, {"a": np.float32([1])}, rank=0)
        run.save(step, {"b" if value is None else "a": np.float32([value or 1])}, rank=1)
    assert history(findings_by_step(TooLarge(run.end().trial()))) == {2: [("a", 2, 0)]}


class NotAtOne(TooLarge):
    """Passes all over as a whole at step 1."""

    def judged(self, step):
        return [Judged("a", "", skipped="not now")] if step == 1 else super().judged(step)


def test_a_step_at_which_all_was_skipped_as_a_whole_is_not_called_good():
    run = made_run(steps_of(a={0: 1, 1: 1, 2: 20, 3: 1, 4: 20})).trial()
    assert history(findings_by_step(NotAtOne(run))) == {2: [("a", 2, 0)], 4: [("a", 4, 3)]}


class OddSteps(TooLarge):
    """Checks every other step, and remembers the last one."""

    def judged(self, step):
        for item in super().judged(step) if step % 2 else ():
            details = {"last_good_step": step - 2}
            yield item._replace(finding=item.finding and replace(item.finding, details=details))


def test_a_rule_that_skips_steps_names_the_last_good_step_itself():
    run = made_run(steps_of(a=dict(enumerate([1, 20, 1, 1, 1, 20, 1, 20])))).trial()
    found = findings_by_step(OddSteps(run))
    assert history(found) == {1: [("a", 1, None)], 5: [("a", 5, 3)], 7: [("a", 5, 3)]}
    assert "last_good_step" not in found[1][0].details


def test_a_rule_that_finds_nothing_remembers_nothing_new_from_step_to_step():
    steps = {step: {"a": np.float32([1]), "text": np.array(["x"])} for step in range(3)}
    rule = TooLarge(made_run(steps).trial())
    states = []
    for step in steps:
        rule.invoke(step)
        states.append(bytes(save_state(rule)))
    assert states[0] == states[1] == states[2]


def test_since_when_is_remembered_in_the_state():
    run = made_run(steps_of(a={0: 1, 3: 20, 5: 30})).trial()
    first = TooLarge(run)
    findings_by_step(first, end_step=4)
    later = TooLarge(run)
    restore_state(later, save_state(first))
    assert history(findings_by_step(later, start_step=5)) == {5: [("a", 3, 0)]}


def test_workers_are_kept_apart():
    run = MadeRun(workers=2)
    for step, values in enumerate([(1, 20), (30, 20), (30, 1)]):
        for rank, value in enumerate(values):
            run.save(step, {"a": np.float32([value])}, rank=rank)
    found = findings_by_step(TooLarge(run.end().trial()))
    assert {
        step: [(finding.worker, finding.details["found_since"]) for finding in findings]
        for step, findings in found.items()
    } == {0: [("worker_1", 0)], 1: [("worker_0", 1), ("worker_1", 0)], 2: [("worker_0", 1)]}


def test_skipped_tensors_are_reported_and_do_not_count_as_checked():
    tensors = {"text": np.array(["x"]), "empty": np.zeros(0, np.float32)}
    rule = TooLarge(made_run({0: tensors, 1: {"a": np.float32([1])}}).trial())
    assert found_data_at(rule, 0) is False
    assert rule.skipped == {"text": "its values are not numbers", "empty": "it is empty"}
    assert found_data_at(rule, 1) is True
    assert rule.skipped == {}


def test_only_so_many_are_remembered():
    tensors = {f"t{at:04}": np.float32([99]) for at in range(MOST_REMEMBERED + 5)}
    rule = TooLarge(made_run({0: tensors, 1: tensors}).trial())
    found = findings_by_step(rule)
    assert len(rule.found_since) == MOST_REMEMBERED
    assert [finding.details["found_since"] for finding in found[1][-6:]] == [0, 1, 1, 1, 1, 1]


def test_statistics_are_computed_once_for_all_rules(monkeypatch):
    from smdebug.trials.stored import values as trials

    asked = []
    real = trials.statistics
    monkeypatch.setattr(trials, "statistics", lambda value: asked.append(1) or real(value))
    run = made_run(steps_of(a={0: 1, 1: 20})).trial()
    assert list(findings_by_step(TooLarge(run))) == [1]
    assert list(findings_by_step(TooLarge(run))) == [1]
    assert len(asked) == 2
