"""The weights of a sampler are noted once, and wrong ones are found in a training."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import BatchSampler, DataLoader, TensorDataset, WeightedRandomSampler

import smdebug
from smdebug.pytorch.listening.passes import PASSES
from smdebug.pytorch.observing.sampling import Sampling
from smdebug.runs import diagnose
from smdebug.trials import create_trial
from smdebug_default_rules.inputs.sampler_weights import TITLE, TITLE_OF_FEW

LABELS = torch.tensor([0] * 160 + [1] * 40 + [2] * 40)
COUNTS = torch.bincount(LABELS).double()


class Endless(TensorDataset):
    """Rows of which nobody knows the number."""

    def __len__(self):
        raise TypeError("it has no length")


def trained(place, sampler, batch_sampler=None, steps=30):
    """Train for a few steps on rows that the sampler draws; return the run."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    data = TensorDataset(torch.randn(len(LABELS), 8) + LABELS[:, None], LABELS)
    if batch_sampler is None:
        loader = DataLoader(data, batch_size=40, sampler=sampler)
    else:
        loader = DataLoader(data, batch_sampler=batch_sampler)
    with smdebug.start(str(place)):
        done = 0
        while done < steps:
            for rows, labels in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), labels).backward()
                optimizer.step()
                done += 1
    return str(place)


def titles(run):
    return {issue.title for issue in diagnose(run).issues} & {TITLE, TITLE_OF_FEW}


def noted(run):
    trial = create_trial(run)
    return [trial.facts(step).get("sampler") for step in trial.steps()[:10]]


def by(weights, **options):
    return WeightedRandomSampler(weights, len(LABELS), **options)


def test_weights_are_noted_from_the_first_step_on(tmp_path):
    run = trained(tmp_path / "run", by(1 / COUNTS[LABELS]))
    kinds = [[1 / 160, 160], [1 / 40, 80]]
    assert noted(run)[0] == {"rows": 240, "weights": 240, "batch": 40, "kinds": kinds}
    assert len({str(each) for each in noted(run)}) == 1
    assert titles(run) == set()


def test_weights_that_are_the_counts_are_found(tmp_path):
    assert titles(trained(tmp_path / "run", by(COUNTS[LABELS].tolist()))) == {TITLE}


def test_a_weight_for_each_class_is_found(tmp_path):
    assert titles(trained(tmp_path / "run", by(1 / COUNTS))) == {TITLE_OF_FEW}


def test_the_sampler_of_batches_is_noted(tmp_path):
    batches = BatchSampler(by(COUNTS[LABELS]), 40, drop_last=True)
    assert titles(trained(tmp_path / "run", None, batches)) == {TITLE}


@pytest.mark.parametrize(
    "sampler",
    [
        None,
        by(torch.ones(len(LABELS)), replacement=False),  # the weights only order the rows
        torch.utils.data.SubsetRandomSampler(range(len(LABELS))),
    ],
)
def test_other_samplers_are_not_noted(tmp_path, sampler):
    assert set(noted(trained(tmp_path / "run", sampler))) == {None}


def test_many_different_weights_are_counted_and_not_listed(tmp_path):
    run = trained(tmp_path / "run", by(torch.rand(len(LABELS), dtype=torch.float64)))
    assert noted(run)[0] == {"rows": 240, "weights": 240, "batch": 40}


class Failing(TensorDataset):
    """Rows whose number cannot be had."""

    def __len__(self):
        raise OSError("the disk is gone")


@pytest.mark.parametrize(("kind", "said"), [(Endless, []), (Failing, ["the disk is gone"])])
def test_a_data_set_without_a_length_leaves_the_weights_out_alone(kind, said):
    PASSES.install()
    errors = []
    sampling = Sampling(lambda error: errors.append(str(error)))
    loader = DataLoader(kind(torch.ones(240, 8), LABELS), batch_size=40, sampler=by(COUNTS[LABELS]))
    rows = iter(loader)
    assert sampling.facts() is None
    assert errors == said
    assert len(next(rows)[0]) == 40
