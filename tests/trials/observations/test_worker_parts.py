"""Which parts of sharded parameters are copies of each other, from the facts of each worker."""

import pytest

from smdebug.trials.observations.worker_parts import (
    Part,
    Share,
    WorkerParts,
    by_tensor,
    part_in_words,
    shares_of,
)

HELD, OTHER = (1, 2), (3, 4)


def group(at, splits, *, mesh=("dp", "tp"), first=0, own_rows=(True, False), tensors=("w",)):
    return {
        "mesh": list(mesh),
        "sizes": [2] * len(mesh),
        "first_rank": first,
        "at": list(at),
        "splits": list(splits),
        "own_rows": list(own_rows),
        "tensors": list(tensors),
    }


def holding(digests, splits, **more):
    """The tensor `w` on a mesh of two by two ranks, of which each holds what is given."""
    places = [(0, 0), (0, 1), (1, 0), (1, 1)]
    workers = {
        f"worker_{rank}": WorkerParts.of_layout({"parts": [group(at, splits, **more)]}, {"w": digest})
        for rank, (at, digest) in enumerate(zip(places, digests, strict=True))
    }
    (tensor,) = by_tensor(workers)
    return tensor


def test_ranks_along_a_copying_dimension_hold_copies():
    copied_over_dp = [None, 0]
    assert holding([HELD, OTHER, HELD, OTHER], copied_over_dp).differing == {}
    differing = holding([HELD, OTHER, HELD, HELD], copied_over_dp).differing
    assert differing == {(("tp", 1),): [["worker_1"], ["worker_3"]]}


def test_parts_of_every_rank_may_all_differ():
    tensor = holding([(1, 0), (2, 0), (3, 0), (4, 0)], [0, 0])
    assert tensor.differing == {} == tensor.differing_between_meshes
    assert tensor.alike_along() is None


@pytest.mark.parametrize(
    ("digests", "along"),
    [
        ([HELD, HELD, OTHER, OTHER], "tp"),  # one seed for the ranks of each replica
        ([HELD, OTHER, HELD, OTHER], "dp"),
        ([HELD, HELD, HELD, HELD], "dp"),
        ([HELD, HELD, HELD, OTHER], None),
        ([HELD, OTHER, OTHER, HELD], None),
    ],
)
def test_parts_are_alike_along_the_dimension_that_should_tell_them_apart(digests, along):
    assert holding(digests, [0, 1]).alike_along() == along


def test_copies_are_not_parts_that_are_alike():
    assert holding([HELD] * 4, [None, None]).alike_along() is None
    assert holding([HELD, OTHER, HELD, OTHER], [None, 0]).alike_along() is None


def test_meshes_of_their_own_hold_copies_only_as_far_as_the_rules_remember():
    first = WorkerParts.of_layout({"parts": [group([0], [0], mesh=["tp"], own_rows=[False])]}, {"w": HELD})
    second = WorkerParts.of_layout(
        {"parts": [group([0], [0], mesh=["tp"], own_rows=[False], first=2)]}, {"w": OTHER}
    )
    (tensor,) = by_tensor({"worker_0": first, "worker_2": second})
    assert tensor.differing == {}
    assert tensor.differing_between_meshes == {(("tp", 0),): [["worker_0"], ["worker_2"]]}


def test_rows_follow_the_dimensions_whose_ranks_have_their_own():
    held = WorkerParts.of_layout(
        {
            "parts": [
                group([1, 0], [0, 1]),
                group([1], [0], mesh=["dp"], own_rows=[True], tensors=["norm"]),
            ]
        },
        {"w": HELD, "norm": OTHER},
    )
    assert held.rows == (("dp", 1),)
    assert {name: part.place for name, part in held.parts.items()} == {
        "w": (("dp", 1), ("tp", 0)),
        "norm": (("dp", 1),),
    }


def test_a_mesh_that_does_not_say_which_ranks_share_rows_leaves_them_unknown():
    held = WorkerParts.of_layout(
        {"parts": [group([1, 0], [0, None], mesh=["", ""], own_rows=[None, None])]}, {"w": HELD}
    )
    assert held.rows is None
    assert held.parts["w"].place == (("dimension 0", 1),)


@pytest.mark.parametrize(
    "noted",
    [
        None,
        7,
        "parts",
        [7],
        [{}],
        [{**group([0, 1], [0, 0]), "at": ["0", "1"]}],
        [{**group([0, 1], [0, 0]), "at": [0]}],
        [{**group([0, 1], [0, 0]), "splits": 3}],
        [{**group([0, 1], [0, 0]), "own_rows": None}],
        [{**group([0, 1], [0, 0]), "first_rank": "0"}],
        [{**group([0, 1], [0, 0]), "tensors": [["w"], 3, "not there"]}],
    ],
)
def test_facts_of_another_form_are_left_out(noted):
    assert dict(WorkerParts.of_layout({"parts": noted}, {"w": HELD}).parts) == {}


def test_a_part_is_named_by_its_place_along_each_dimension_that_splits_the_tensor():
    facts = {"parts": [group([1, 0], [None, 0]), group([0, 1], [0, 1], tensors=["v"])]}
    assert part_in_words(facts, "gradient/w") == "1 of 2 along tp"
    assert part_in_words(facts, "v") == "1 of 2 along dp and 2 of 2 along tp"


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"parts": 7},
        {"parts": [group([1, 0], [None, None])]},  # copies
        {"parts": [group([1, 0], [0, 0], tensors=["v"])]},
        {"parts": [{**group([1, 0], [0, 0]), "sizes": [2]}]},
        {"parts": [{**group([1, 0], [0, 0]), "at": ["1", 0]}]},
    ],
)
def test_a_tensor_that_no_fact_calls_split_is_whole(facts):
    assert part_in_words(facts, "w") is None


SHARDED = {**group([1, 0], [0, None]), "shapes": [[4, 3]]}


def test_a_worker_holds_a_share_of_each_sharded_tensor():
    assert shares_of({"parts": [SHARDED]}) == {
        "w": Share(mesh=0, place=(("dp", 1),), of=2, words="2 of 2 along dp", shape=(4, 3))
    }
    over_both = {**group([1, 0], [0, 1], first=4, tensors=["w", "v"]), "sizes": [2, 3], "shapes": [[4], []]}
    found = shares_of({"parts": [over_both]})
    assert found["v"] == Share(4, (("dp", 1), ("tp", 0)), 6, "2 of 2 along dp and 1 of 3 along tp", ())
    assert found["w"].shape == (4,)


@pytest.mark.parametrize(
    "change",
    [
        {"splits": [None, None]},
        {"shapes": None},
        {"tensors": None},
        {"sizes": [2]},
        {"sizes": [2, 2, 2]},
        {"sizes": [2.0, 2]},
        {"sizes": ["2", 2]},
        {"first_rank": "0"},
        {"mesh": None},
        {"mesh": ["dp"]},
        {"at": [1, None]},
        {"at": [1]},
        {"splits": None},
        {"splits": [0]},
        {"own_rows": None},
        {"own_rows": [True]},
        {"shapes": [None]},
        {"shapes": [[4, "3"]]},
        {"shapes": [(4, 3)]},
        {"tensors": [7]},
        {"tensors": []},
    ],
)
def test_parts_of_another_form_are_no_shares_and_hide_no_other(change):
    other = {**SHARDED, "tensors": ["v"]}
    assert list(shares_of({"parts": [{**SHARDED, **change}, other]})) == ["v"]
    assert shares_of({"parts": {**SHARDED, **change}}) == {}
    assert shares_of({}) == {}


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("w", {}, "2 of 2 along dp"),
        ("gradient/w", {}, "2 of 2 along dp"),
        ("update/w", {}, "2 of 2 along dp"),
        ("v", {}, None),
        ("w", {"splits": [0, 1]}, "2 of 2 along dp and 1 of 2 along tp"),
        ("w", {"splits": [None, None]}, None),
        ("w", {"sizes": [2]}, None),
        ("w", {"mesh": ["", "tp"]}, "2 of 2 along dimension 0"),
        ("w", {"own_rows": [None, None]}, "2 of 2 along dp"),
    ],
)
def test_a_part_is_named_by_its_place(name, change, words):
    assert part_in_words({"parts": [{**SHARDED, **change}]}, name) == words
    assert part_in_words({"parts": [{"mesh": 3}, {**SHARDED, **change}]}, name) == words


@pytest.mark.parametrize(
    ("own_rows", "rows"),
    [
        ((True, False), (("dp", 1),)),
        ((False, False), ()),
        ((True, True), (("dp", 1), ("tp", 0))),
        ((True, None), None),
        ((True, 1), None),
    ],
)
def test_a_worker_trains_on_the_rows_of_its_place(own_rows, rows):
    known = WorkerParts.of_layout({"parts": [group([1, 0], [0, None], own_rows=own_rows)]}, {"w": HELD})
    assert known.rows == rows
    assert known.parts == {"w": Part(0, (("dp", 1),), HELD)}


def test_rows_are_unknown_if_one_mesh_does_not_say_them():
    of_form, of_none = group([1, 0], [0, None]), {"mesh": 3}
    for groups in ([of_form, of_none], [of_none, of_form]):
        known = WorkerParts.of_layout({"parts": groups}, {"w": HELD})
        assert known.rows is None
        assert list(known.parts) == ["w"]
    assert WorkerParts.of_layout({"parts": "none"}, {}) == WorkerParts({}, ())


def test_a_part_without_a_digest_is_not_compared():
    parts = WorkerParts.of_layout(
        {"parts": [group([1, 0], [0, None], tensors=["w", "v", "u", 3])]}, {"w": (0, 0), "v": (0, 1), 3: HELD}
    ).parts
    assert list(parts) == ["v"]


def test_the_most_frequent_content_comes_first():
    differing = holding([HELD, OTHER, OTHER, OTHER], [None, None]).differing
    assert differing == {(): [["worker_1", "worker_2", "worker_3"], ["worker_0"]]}
