from __future__ import annotations

import numpy as np
import pytest

from smdebug_rules.trees.tree_depth import TreeDepth, depth_by_children, depth_of_heap
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at


@pytest.mark.parametrize(
    ("largest", "depth"), [(0, 0), (1, 0), (2, 1), (3, 1), (6, 2), (30, 4), (32, 5), (126, 6)]
)
def test_the_largest_number_of_a_heap_gives_its_depth(largest, depth):
    assert depth_of_heap(largest) == depth


def test_the_number_30_is_4_deep_which_is_not_more_than_4():
    steps = {0: {"trees/Node": np.arange(31)}, 1: {"trees/Node": np.arange(40)}}
    run = made_run(steps, collections={"trees": ["^trees/"]}).trial()
    found = findings_by_step(TreeDepth(run))
    assert list(found) == [1]
    assert str(found[1][0]) == "trees/Node: tree depth 5 (limit 4), from its largest node 39"
    assert fires_at(TreeDepth(run, depth="3")) == [0, 1]


def test_where_the_branches_were_saved_a_crooked_tree_is_measured_as_it_is():
    # A chain of five splits, which XGBoost numbers one after the other: the numbers say 3.
    ids = [f"0-{node}" for node in range(11)]
    yes = [f"0-{2 * node + 1}" if node < 1 else "" for node in range(11)]
    no = ["" for _ in range(11)]
    for parent, (left, right) in {0: (1, 2), 2: (3, 4), 4: (5, 6), 6: (7, 8), 8: (9, 10)}.items():
        yes[parent], no[parent] = f"0-{left}", f"0-{right}"
    tensors = {"trees/Node": np.arange(11), "trees/ID": ids, "trees/Yes": yes, "trees/No": no}
    run = made_run({0: {name: np.array(item) for name, item in tensors.items()}}).trial()
    (found,) = findings_by_step(TreeDepth(run))[0]
    assert (found.value, str(found)) == (
        5,
        "trees/Node: tree depth 5 (limit 4), from its branches",
    )


def test_branches_that_go_round_in_circles_are_not_a_tree():
    assert depth_by_children({"a": ["b"], "b": ["a"]}) is None
    assert depth_by_children({"r": ["a"], "a": ["b"], "b": ["a"]}) is None
    assert depth_by_children({"a": []}) == 0


def test_a_saved_maximum_is_enough_and_each_worker_counts():
    run = MadeRun(workers=2)
    run.save(0, {"trees/Node": np.arange(3)}, rank=0)
    run.save(0, {"smdebug/reductions/max/trees/Node": np.float32(64)}, rank=1)
    found = findings_by_step(TreeDepth(run.end().trial()))
    assert [(finding.worker, finding.value) for finding in found[0]] == [("worker_1", 6)]


def test_without_node_numbers_nothing_is_detected():
    run = made_run({0: {"trees/Node": np.array(["a"])}, 1: {"loss": np.float32(1)}}).trial()
    assert [found_data_at(TreeDepth(run), step) for step in (0, 1)] == [False, False]
