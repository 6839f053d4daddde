"""Faults that no error and often no loss shows: masks, experts, codes. Rules may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy, layer
from corpus.programs.data import batches, digits
from corpus.programs.faults_torch import train
from corpus.programs.healthy_torch import classifier
from corpus.programs.modern_parts import texts
from corpus.programs.silent.parts import Encoder, Language, MixtureOfExperts, VariationalCoder, learn_language
from corpus.programs.targets_held_out_torch import network
from corpus.programs.targets_torch import sensors


@fault("loss input", r"output|batch", visible_from=0, source="dim=0", held_out=False)
def softmax_over_the_rows_of_the_batch(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(*digits(), size=48, seed=seed, epochs=8):
        optimizer.zero_grad()
        F.nll_loss(F.log_softmax(model(some), dim=0 if faulty else 1), expected).backward()
        optimizer.step()


class Deep(nn.Module):
    """Has its hidden layers in a list."""

    def __init__(self, is_plain: bool):
        super().__init__()
        self.first, self.last = nn.Linear(64, 32), nn.Linear(32, 10)
        hidden = [nn.Linear(32, 32) for _ in range(3)]
        self.hidden = hidden if is_plain else nn.ModuleList(hidden)

    def forward(self, inputs: Tensor) -> Tensor:
        values = self.first(inputs).relu()
        for each in self.hidden:
            values = each(values).relu()
        output: Tensor = self.last(values)
        return output


@fault("no gradient", r"hidden", visible_from=2, source="layers in a list", held_out=False)
def layers_in_a_list(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Deep(faulty)
    train(model, torch.optim.Adam(model.parameters(), 2e-3), seed)


@fault("lost update", layer("3", "Sequential_3"), visible_from=40, onset=0, source="set back", held_out=False)
def one_weight_is_set_back(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    kept = model[3].weight.detach().clone()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=8):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()
        if faulty:
            model[3].weight.data.copy_(kept)


@fault("attention", r".*", visible_from=2, source="no causal mask", held_out=False)
def language_model_that_sees_the_next_token(seed: int, faulty: bool) -> None:
    learn_language(Language(is_causal=not faulty), seed)


def padded_texts(seed: int) -> tuple[Tensor, Tensor]:
    rows, mask = texts(seed)
    rows = torch.where(mask.bool(), rows, 0)
    return rows, (rows == 5).any(1).long()


@fault("attention", r".*", visible_from=2, source="key_padding_mask is inverted", held_out=False)
def attention_to_the_padding_alone(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Encoder(hides=(lambda ids: ids != 0) if faulty else (lambda ids: ids == 0))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for ids, labels in batches(*padded_texts(seed), size=32, seed=seed, epochs=6):
        optimizer.zero_grad()
        F.cross_entropy(model(ids), labels).backward()
        optimizer.step()


@fault("unused experts", r"expert", visible_from=60, onset=0, source="torchtitan 1246", held_out=False)
def router_that_collapses(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = MixtureOfExperts(count=6, taken=1)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    if faulty:
        with torch.no_grad():
            model.gate.weight.mul_(4)
            model.gate.bias[0] = 4.0
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=10):
        output, balance = model(some)
        optimizer.zero_grad()
        (F.cross_entropy(output, expected) + (0.0 if faulty else 0.05) * balance).backward()
        optimizer.step()


@fault("collapsed representation", r".*", visible_from=100, onset=0, source="KL too heavy", held_out=False)
def posterior_that_collapses(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = VariationalCoder()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for (some,) in batches(digits()[0], size=64, seed=seed, epochs=12):
        output, mean, logvar = model(some)
        divergence = -0.5 * (1 + logvar - mean.square() - logvar.exp()).sum(1).mean()
        loss = F.mse_loss(output, some, reduction="sum") / len(some) + (20.0 if faulty else 0.2) * divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# Healthy trainings that resemble them


@healthy(held_out=False)
def classes_with_weights_that_barely_learn(seed: int) -> None:
    torch.manual_seed(seed)
    readings, wanted = sensors(seed, 4000)
    labels = (wanted[:, 1] + 6 * torch.randn(4000) > 6).long()
    model = network(12, 2)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.2, 3.0]))
    for some, expected in batches(readings, labels, size=64, seed=seed, epochs=7):
        optimizer.zero_grad()
        criterion(model(some), expected).backward()
        optimizer.step()


@healthy(held_out=False)
def values_learnt_from_their_own_estimates(seed: int) -> None:
    """The targets of a Q-function come from a copy of it: their variance is no baseline."""
    torch.manual_seed(seed)
    values, behind = network(4, 3), network(4, 3)
    optimizer = torch.optim.Adam(values.parameters(), 1e-3)
    for number in range(400):
        if number % 50 == 0:
            behind.load_state_dict(values.state_dict())
        state, following = torch.randn(64, 4), torch.randn(64, 4)
        choice = torch.randint(3, (64, 1))
        reward = torch.sin(state[:, :1]) * (choice - 1) + 3 * torch.randn(64, 1)
        with torch.no_grad():
            wanted = reward + 0.9 * behind(following).max(1, keepdim=True).values
        loss = F.mse_loss(values(state).gather(1, choice), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault(
    "no gradient",
    r"^Sequential_",
    visible_from=60,
    onset=0,
    source="a backbone that is frozen before its weights are loaded",
    held_out=False,
)
def layers_frozen_without_their_weights(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    inputs, labels = digits()
    body = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU())
    model = nn.Sequential(body, nn.Linear(32, 10))
    stages = [False] if faulty else [True, False]
    for is_first in stages:
        body.requires_grad_(is_first)
        optimizer = torch.optim.Adam([each for each in model.parameters() if each.requires_grad], 2e-3)
        for some, expected in batches(inputs, labels, size=64, seed=seed + is_first, epochs=5):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
