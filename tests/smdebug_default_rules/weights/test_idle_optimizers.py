"""Optimizers that make no step: for long enough, with gradients that are reset, of weights that stay."""

import pytest

from smdebug_default_rules.catalog import CATALOG
from smdebug_default_rules.weights import idle_optimizers
from tests.smdebug_default_rules.made_runs import PARAMETERS
from tests.smdebug_default_rules.made_steps import Steps

OWN = PARAMETERS[2:]


class Idle(Steps):
    """A run of two optimizers, of which that of two layers is never used; a test changes it."""

    def __init__(self, own=OWN):
        super().__init__()
        self.first = {name: self.kinds["parameters"][name] for name in own}
        self.is_moved = False
        rest = [name for name in PARAMETERS if name not in own]
        self.lasting["optimizers"] = [{"class": "SGD", "groups": [{"parameters": rest, "others": 0}]}]
        self.facts["idle_optimizers"] = [{"class": "Adam", "parameters": list(own), "are_reset": True}]
        self.refresh()

    def refresh(self):
        super().refresh()
        for name in getattr(self, "first", {}):
            self.kinds["updates"].pop(f"update/{name}", None)
            self.kinds["gradients"].pop(f"gradient/{name}", None)
            if not self.is_moved:
                self.kinds["parameters"][name] = self.first[name]


def idle(steps=10, apart=10_000, run=Idle):
    """A run of so many saved steps, the last so far from the first."""
    made = run()
    made.write(steps=steps - 1)
    made.step = apart
    return made.write()


def at_end(run):
    """The findings of the rule once the run has ended."""
    rule = CATALOG["UnreachedParameters"].load()(None)
    for seen in run.seen:
        rule.observed = lambda step, seen=seen: seen
        rule.invoke_at_step(seen.step)
    rule.invoke_at_end(run.seen[-1].step)
    return [finding for finding in rule.findings if finding.title == idle_optimizers.TITLE]


@pytest.mark.parametrize(("steps", "apart", "count"), [(10, 150, 1), (9, 150, 0), (10, 149, 0)])
def test_an_optimizer_without_a_step_is_found_at_the_end_of_a_run(steps, apart, count):
    assert len(at_end(idle(steps, apart))) == count


@pytest.mark.parametrize(("apart", "found"), [(9_999, []), (10_000, [10_000])])
def test_as_long_as_the_run_goes_on_it_may_begin_later(apart, found):
    assert [step for step, _ in idle(apart=apart).evaluate("UnreachedParameters")] == found


def test_the_finding_names_the_optimizer_and_a_weight():
    (finding,) = at_end(idle(apart=200))
    assert finding.tensor == "Net_2.weight"
    assert finding.message == (
        "An optimizer (Adam) has made no step in 200 steps, although its gradients are reset: Net_2.weight "
        "of layer 2 (Linear) never changes"
    )


def unreset():
    steps = Idle()
    steps.facts["idle_optimizers"][0]["are_reset"] = False
    return steps


def moved():
    steps = Idle()
    steps.is_moved = True
    steps.refresh()
    return steps


def of_biases():
    return Idle(PARAMETERS[1::2])


@pytest.mark.parametrize("run", [unreset, moved, of_biases])
def test_what_is_used_later_or_in_another_way_is_healthy(run):
    """Gradients that add up are not meant for now, and weights may be updated without the optimizer."""
    assert at_end(idle(run=run)) == []


def test_one_that_makes_a_step_late_is_healthy():
    steps = Idle().write(steps=400)
    del steps.facts["idle_optimizers"]
    assert at_end(steps.write()) == []


def test_its_weights_do_not_lack_an_optimizer():
    """Two layers of three have one that will step at every fifth batch."""
    steps = Idle(PARAMETERS[4:])
    learning = {f"gradient/{name}": value for name, value in steps.first.items()}
    steps.kinds["gradients"].update(learning)
    steps.write()
    steps.kinds["gradients"].update(learning)
    assert steps.write().evaluate("UnreachedParameters") == []
    del steps.facts["idle_optimizers"]
    steps.kinds["gradients"].update(learning)
    ((_, finding),) = steps.write().evaluate("UnreachedParameters")
    assert finding.title == "A layer belongs to no optimizer"
