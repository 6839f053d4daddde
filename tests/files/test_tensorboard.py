import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tensorboard.compat.proto.event_pb2 import Event

from smdebug.exceptions import SMDebugTypeError
from smdebug.files.event_reading import iterate_records, record_spans
from smdebug.files.tensorboard import (
    clean_tag,
    default_edges,
    encode_distribution,
    encode_graph,
    encode_histogram,
    encode_scalar,
    histogram_of,
)
from tests.support.golden_records import GOLDEN

RUNS = [GOLDEN / "runs/single_worker", GOLDEN / "runs/pytorch_hook"]


def event_in(record):
    data = b"".join(record.pieces)
    ((start, stop),) = record_spans(data, file="f", check="full")
    return Event.FromString(data[start:stop])


def edges_by_hand():
    positive = [1e-12]
    while positive[-1] * 1.1 < 1e20:
        positive.append(positive[-1] * 1.1)
    return np.array([-edge for edge in reversed(positive)] + [0.0] + positive)


class Summary(NamedTuple):
    """One that the old library has written."""

    value: Any
    moment: dict[str, Any]
    framed: bytes
    """Its record, between the length and the checksums."""


def summaries_in(path: Path) -> Iterator[Summary]:
    data = path.read_bytes()
    for start, stop in record_spans(data, file=str(path), check="full"):
        event = Event.FromString(data[start:stop])
        (value,) = event.summary.value
        moment = {"step": event.step, "wall_time": event.wall_time}
        yield Summary(value, moment, data[start - 12 : stop + 4])


def histograms_of_saved_tensors(run: Path) -> Iterator[tuple[Summary, np.ndarray]]:
    """Yield each with its tensor; of other tensors only reductions were saved."""
    for path in run.glob("tensorboard/*/*"):
        tensors = tensors_by_tag(run, step=path.name[:12])
        for summary in summaries_in(path):
            name = summary.value.tag.partition("/")[2]
            if summary.value.HasField("histo") and name in tensors:
                yield summary, tensors[name]


def tensors_by_tag(run: Path, step: str) -> dict[str, np.ndarray]:
    """The tensors that a reference run saved at a step."""
    return {
        clean_tag(event.name): event.value
        for path in run.glob(f"events/{step}/*")
        for event in iterate_records(path.read_bytes(), file=str(path))
    }


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_the_scalars_of_the_reference_runs_are_written_again_to_the_byte(run):
    scalars = [
        summary
        for path in run.glob("tensorboard/*/*")
        for summary in summaries_in(path)
        if summary.value.HasField("simple_value")
    ]
    assert len(scalars) > 10
    for value, moment, framed in scalars:
        record = encode_scalar(value.tag, value.simple_value, **moment)
        assert b"".join(record.pieces) == framed


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_the_histograms_of_the_reference_runs_are_written_again_to_the_byte(run):
    histograms = list(histograms_of_saved_tensors(run))
    assert len(histograms) > 20
    for (value, moment, framed), array in histograms:
        histogram = histogram_of(array)
        # Its last bit depends on the processor, for which BLAS chooses the order of additions.
        sum_of_squares = value.histo.sum_squares
        assert histogram.sum_of_squares == pytest.approx(sum_of_squares, rel=1e-14)
        histogram = histogram._replace(sum_of_squares=sum_of_squares)
        record = encode_distribution(value.tag, histogram, **moment)
        assert b"".join(record.pieces) == framed


@given(
    arrays.arrays(
        st.sampled_from(["f2", "f4", "f8", "i1", "i8", "u8", "?", ">f4"]),
        arrays.array_shapes(min_dims=0, max_dims=3, max_side=20),
    )
)
def test_buckets_are_numpys_and_without_the_empty_ends(array):
    finite = array[np.isfinite(array)].astype(np.float64)
    counts, edges = np.histogram(finite, edges_by_hand())
    found = histogram_of(array)
    assert found.number == finite.size
    assert found.counts.sum() == counts.sum()
    if counts.any():
        assert found.counts[0] == 0
        assert found.counts[1] > 0
        assert found.counts[-1] > 0
        at = list(edges).index(found.limits[0])
        assert found.counts[1:].tolist() == counts[at : at + len(found.counts) - 1].tolist()
        assert found.limits.tolist() == edges[at : at + len(found.limits)].tolist()
    if finite.size:
        assert (found.minimum, found.maximum) == (finite.min(), finite.max())


def test_large_arrays_are_counted_in_blocks_and_no_different():
    values = np.random.default_rng(5).normal(size=200_001).astype(np.float32)
    counts, _ = np.histogram(values.astype(np.float64), edges_by_hand())
    found = histogram_of(values)
    assert found.counts[found.counts > 0].tolist() == counts[counts > 0].tolist()
    assert math.isclose(found.sum, values.astype(np.float64).sum(), rel_tol=1e-12)


def test_edges_belong_to_the_bucket_above_and_the_last_one_to_the_last():
    edges = edges_by_hand()
    counts, _ = np.histogram(edges, edges)
    assert histogram_of(edges).counts[1:].tolist() == counts.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8"])
def test_values_beside_an_edge_are_counted_as_numpy_counts_them(dtype):
    import ml_dtypes

    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    edges = default_edges()
    near = edges.astype(np.float32)
    values = np.concatenate(
        [
            near,
            np.nextafter(near, np.float32(1e30)),
            np.nextafter(near, np.float32(-1e30)),
            [0, -0.0],
        ]
    )
    with np.errstate(all="ignore"):
        values = values[np.abs(values) < 100].astype(kind) if kind.kind == "i" else values.astype(kind)
    wide = values.astype(np.float64)
    expected, _ = np.histogram(wide[np.isfinite(wide)], edges)
    found = histogram_of(values)
    filled = np.flatnonzero(expected)
    np.testing.assert_array_equal(found.counts[1:], expected[filled[0] : filled[-1] + 1])


def test_values_that_are_not_finite_are_left_out():
    event = event_in(encode_histogram("x", np.array([np.nan, 1, np.inf, -np.inf, 2]), step=1, wall_time=2.0))
    histogram = event.summary.value[0].histo
    assert (histogram.num, histogram.min, histogram.max, histogram.sum) == (2, 1, 2, 3)


@pytest.mark.parametrize("values", [[], [np.nan, np.inf], [1e30], [1e308, 1e308], [-0.0], [3, 4]])
def test_tensorboard_can_show_any_histogram(values):
    from tensorboard.data_compat import migrate_value
    from tensorboard.util.tensor_util import make_ndarray

    event = event_in(encode_histogram("x", np.array(values), step=1, wall_time=2.0))
    buckets = make_ndarray(migrate_value(event.summary.value[0]).tensor)
    assert buckets.shape[1] == 3
    assert np.isfinite(buckets).all()


def test_complex_numbers_are_shown_by_their_real_parts():
    assert histogram_of(np.array([1 + 5j], np.complex64)).maximum == 1


def test_bfloat16_has_a_histogram():
    import ml_dtypes

    assert histogram_of(np.array([1, 2, np.nan], ml_dtypes.bfloat16)).sum == 3


def test_there_is_no_histogram_of_text():
    with pytest.raises(SMDebugTypeError, match="no histogram"):
        histogram_of(np.array(["a"]))


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, 0.0), (1.5, 1.5), (1e300, math.inf), (-1e300, -math.inf), (7, 7.0)]
)
def test_scalars_are_float32(value, shown):
    event = event_in(encode_scalar("loss:0", value, step=3, wall_time=1.5))
    assert (event.step, event.wall_time) == (3, 1.5)
    (summary,) = event.summary.value
    assert summary.tag == "loss_0"
    assert summary.HasField("simple_value")
    assert summary.simple_value == shown


def test_a_scalar_may_be_nan():
    event = event_in(encode_scalar("x", math.nan, step=0, wall_time=0))
    assert math.isnan(event.summary.value[0].simple_value)


def test_tags_are_cleaned_as_the_old_library_did():
    for name, tag in {
        "//a:b": "a_b",
        "/é x": "é_x",
        "a b/c": "a_b/c",
        "-.q": "-.q",
        "": "",
    }.items():
        assert clean_tag(name) == tag


def test_graphs_are_messages_or_their_bytes():
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    graph = GraphDef()
    graph.node.add(name="x", op="Placeholder")
    for definition in (graph, graph.SerializeToString()):
        event = event_in(encode_graph(definition, wall_time=1.0))
        assert GraphDef.FromString(event.graph_def) == graph


def test_tensorboard_reads_our_files(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    records = [encode_scalar("loss", step / 2, step=step, wall_time=step) for step in range(5)]
    records.append(encode_histogram("w/x", np.arange(9.0), step=1, wall_time=1))
    path = tmp_path / "000000000000_1_host.tfevents"
    path.write_bytes(b"".join(piece for record in records for piece in record.pieces))
    seen = EventAccumulator(str(path)).Reload()
    assert [(point.step, point.value) for point in seen.Scalars("loss")] == [
        (step, step / 2) for step in range(5)
    ]
    assert seen.Histograms("w/x")[0].histogram_value.num == 9


def test_the_edges_are_the_old_librarys_and_nobody_can_change_them():
    assert default_edges().tolist() == edges_by_hand().tolist()
    assert hashlib.sha1(default_edges()).hexdigest() == "a26ec66ed4e63f402ac74d1914f3b99824ccfc6b"
    with pytest.raises(ValueError, match="read-only"):
        default_edges()[0] = 0
