"""Comparing the digests of workers: which tensors differ, and in whom."""

import numpy as np
import pytest

from smdebug.files.replicas import Replicas, root_digest, root_digests
from smdebug.trials.observations.replicas import Digests, absent, differences

A, B, C = (1, 2), (3, 4), (5, 6)


def compare(contents):
    """Differences between workers, given the digests of each."""
    roots = {worker: root_digest(list(of), of.values()) for worker, of in contents.items()}
    return differences(roots, lambda worker: digests(contents[worker]))


def digests(of_worker):
    return Digests(list(of_worker), np.array([*of_worker.values()], np.int64).reshape(-1, 2))


def compared_one_by_one(contents):
    """The same, name by name and worker by worker."""
    found = []
    for name in sorted({name for of in contents.values() for name in of}):
        by_content = {}
        for rank in range(len(contents)):
            content = contents[f"worker_{rank}"].get(name, (0, 0))
            by_content.setdefault(content, []).append(f"worker_{rank}")
        most = max(by_content.values(), key=len)  # the first of several
        if len(by_content) > 1:
            different = tuple(each for each in contents if each not in most)
            found.append((name, different, tuple(most)))
    return found


def test_a_root_does_not_depend_on_the_order_of_tensors_and_ignores_absent_ones():
    assert root_digest(["x", "y"], [A, B]) == root_digest(["y", "x"], [B, A])
    assert root_digest(["x", "y", "z"], [A, B, (0, 0)]) == root_digest(["x", "y"], [A, B])
    assert root_digest(["x", "y"], [A, B]) != root_digest(["x", "y"], [B, A])


def test_tensors_that_several_workers_hold_differently_are_named_once():
    found = compare(
        {
            "worker_0": {"w": A, "b": B},
            "worker_1": {"w": A, "b": B},
            "worker_2": {"w": C, "b": B},
            "worker_10": {"w": B, "b": B},
        }
    )
    assert [(each.name, each.workers) for each in found] == [("w", ("worker_2", "worker_10"))]
    assert found[0].others == ("worker_0", "worker_1")


def test_a_tensor_that_a_worker_lacks_differs():
    (found,) = compare({"worker_0": {"w": A, "b": B}, "worker_1": {"w": A}})
    assert (found.name, found.workers) == ("b", ("worker_1",))


@pytest.mark.parametrize("seed", range(20))
def test_matrices_give_what_a_comparison_one_by_one_gives(seed):
    random = np.random.default_rng(seed)
    workers, names = int(random.integers(2, 14)), "vwxyz"
    contents = {}
    for rank in range(workers):
        kept = random.permutation([name for name in names if seed % 2 or random.random() < 0.9])
        halves = random.integers(1, 4, (len(kept), 2)) * (1, 1 << 40)
        contents[f"worker_{rank}"] = {
            str(name): tuple(each) for name, each in zip(kept, halves.tolist(), strict=True)
        }
    assert compare(contents) == compared_one_by_one(contents)


def test_two_halves_that_changed_places_are_another_content():
    assert compare({"worker_0": {"w": (1, 2)}, "worker_1": {"w": (2, 1)}}) != []


def test_a_thousand_equal_copies_need_no_digest_of_a_tensor():
    def never(worker):
        raise AssertionError(worker)

    assert differences({f"worker_{rank}": "root" for rank in range(1024)}, never) == []


def test_missing_workers_are_known_by_their_number_only():
    assert absent(["worker_0", "worker_2"], 4) == ["worker_1", "worker_3"]
    assert absent(["host-a", "host-b"], 4) == []


def test_meta_in_another_form_is_ignored():
    assert root_digests({"root_digests": ["x"]}) == {}
    assert root_digests({"root_digests": {"parameters": 3, "inputs": "7d"}}) == {"inputs": "7d"}
    for meta in ({}, {"replicas": 3}, {"replicas": {"chief": "", "workers": 2}}):
        assert Replicas.of_run(meta) is None
    known = {"chief": "worker_0", "workers": 2}
    assert Replicas.of_run({"replicas": known}) == Replicas("worker_0", 2, beside=False)
    assert Replicas.of_run({"replicas": {**known, "beside": True}}) == Replicas("worker_0", 2, beside=True)


def test_digests_are_taken_as_saved():
    assert root_digest(["w"], np.array([A], np.int64).tolist()) == root_digest(["w"], [A])
