"""Codes that say nothing: divergences from the prior, and how alike embeddings are."""

import numpy as np
import pytest

from smdebug.numbers.codes import alignment, divergence_facts, embedding_facts

RANDOM = np.random.default_rng(0)
MEAN, VARIANCE = RANDOM.normal(size=(64, 3)), RANDOM.uniform(0.2, 1.0, (64, 3))


def test_the_divergence_is_that_of_normal_distributions():
    latent = divergence_facts([VARIANCE], [MEAN])["latent"]
    each = 0.5 * (MEAN**2 + VARIANCE - 1 - np.log(VARIANCE)).mean(0)
    assert latent["divergence"] == pytest.approx(each.sum())
    assert (latent["dimensions"], latent["active"]) == (3, 3)
    assert latent["largest"] == pytest.approx(each.max())


def test_dimensions_that_are_as_the_prior_say_nothing():
    mean, variance = MEAN.copy(), VARIANCE.copy()
    mean[:, 1:], variance[:, 1:] = 0, 1
    assert divergence_facts([variance], [mean])["latent"]["active"] == 1
    latent = divergence_facts([np.ones((64, 3))], [np.zeros((64, 3))])["latent"]
    assert (latent["divergence"], latent["active"]) == (0, 0)


@pytest.mark.parametrize(
    ("variances", "means"),
    [
        ([], [MEAN]),
        ([VARIANCE], []),
        ([VARIANCE], [MEAN[:, :2]]),  # an error of the output beside it
        ([-VARIANCE], [MEAN]),
        ([VARIANCE[:, :1]], [MEAN[:, :1]]),
        ([VARIANCE], [np.sqrt(VARIANCE)]),  # the deviation itself
        ([VARIANCE], [MEAN * np.nan]),
    ],
)
def test_there_is_no_divergence_without_a_mean_and_a_variance_of_one_shape(variances, means):
    assert divergence_facts(variances, means) == {}


def test_the_mean_is_chosen_among_other_squares():
    chosen = divergence_facts([VARIANCE], [RANDOM.normal(size=(64, 9)), np.sqrt(VARIANCE), MEAN])
    assert chosen == divergence_facts([VARIANCE], [MEAN])


def test_embeddings_are_alike_if_they_point_in_one_direction():
    rows = RANDOM.normal(size=(200, 16))
    assert abs(alignment(rows)) < 0.02
    assert alignment(rows * 1e-3 + 1.0) > 0.9999
    assert alignment(np.abs(rows)) == pytest.approx(0.63, abs=0.05)
    assert alignment(np.vstack([rows[:1], -rows[:1]])) == pytest.approx(-1)
    assert alignment(np.zeros((4, 3))) == 1.0


def test_the_embeddings_that_are_least_alike_count():
    rows = RANDOM.normal(size=(20, 8))
    assert embedding_facts([rows * 0 + 1, rows])["embedding"] == {
        "rows": 20,
        "columns": 8,
        "alignment": round(alignment(rows), 6),
    }
    assert embedding_facts([rows[:4], rows[:, :2], rows[0]]) == {}


@pytest.mark.parametrize("bad", [0.0, -0.1, np.nan, np.inf])
def test_one_variance_that_is_none_leaves_no_divergence(bad):
    variance = VARIANCE.copy()
    variance[5, 1] = bad
    assert divergence_facts([variance], [MEAN]) == {}
    assert divergence_facts([variance, VARIANCE], [MEAN]) == divergence_facts([VARIANCE], [MEAN])


def test_one_mean_that_is_not_finite_leaves_no_divergence():
    mean = MEAN.copy()
    mean[5, 1] = np.inf
    assert divergence_facts([VARIANCE], [mean]) == {}
    assert divergence_facts([VARIANCE], [mean, MEAN]) == divergence_facts([VARIANCE], [MEAN])


def test_codes_with_two_dimensions_and_codes_of_sequences_have_a_divergence():
    assert divergence_facts([VARIANCE[:, :2]], [MEAN[:, :2]])["latent"]["dimensions"] == 2
    of_sequences = divergence_facts([VARIANCE.reshape(8, 8, 3)], [MEAN.reshape(8, 8, 3)])
    assert of_sequences["latent"] == pytest.approx(divergence_facts([VARIANCE], [MEAN])["latent"])


@pytest.mark.parametrize(("divergence", "active"), [(0.005, 0), (0.015, 2), (0.03, 2)])
def test_a_dimension_is_active_above_a_hundredth_of_a_nat(divergence, active):
    mean = np.full((4, 2), np.sqrt(2 * divergence))
    latent = divergence_facts([np.ones((4, 2))], [mean])["latent"]
    assert latent["largest"] == pytest.approx(divergence)
    assert latent["active"] == active


def test_a_variance_of_almost_nothing_is_told_from_a_square():
    variance, mean = np.full((4, 2), 1e-10), np.full((4, 2), 1e-5)
    assert divergence_facts([variance], [mean])["latent"]["active"] == 2


@pytest.mark.parametrize(("shape", "is_known"), [((8, 4), True), ((7, 4), False), ((8, 3), False)])
def test_embeddings_have_eight_rows_of_four_numbers(shape, is_known):
    assert bool(embedding_facts([RANDOM.normal(size=shape)])) == is_known


def test_of_several_embeddings_the_first_has_the_size_and_the_least_alike_the_alignment():
    spread, equal = RANDOM.normal(size=(20, 8)), np.ones((9, 4))
    assert embedding_facts([equal, spread])["embedding"]["rows"] == 9
    assert embedding_facts([equal, spread])["embedding"]["alignment"] == round(alignment(spread), 6)
    assert embedding_facts([spread, equal])["embedding"]["alignment"] == round(alignment(spread), 6)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_rows_without_a_direction_are_left_out(bad):
    rows = np.array([[3.0, 4.0], [bad, bad], [4.0, 3.0]])
    with np.errstate(invalid="ignore"):
        assert alignment(rows) == pytest.approx(24 / 25)
        assert alignment(rows[:2]) == 1.0
