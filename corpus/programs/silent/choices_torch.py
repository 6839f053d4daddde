"""Faults of what a model chooses and how it is set: routes, positions. Rules may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy, layer
from corpus.programs.data import batches, diabetes, digits, sentences
from corpus.programs.targets_torch import houses, regressor


class TopOfExperts(nn.Module):
    """Four experts, of which the router takes one for each row."""

    def __init__(self, is_weighted: bool, count: int = 4):
        super().__init__()
        self.first, self.head = nn.Linear(64, 32), nn.Linear(32, 10)
        self.router = nn.Linear(32, count, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32)) for _ in range(count)
        )
        self.is_weighted = is_weighted

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.first(inputs).relu()
        shares = self.router(hidden).softmax(-1)
        weight, chosen = shares.max(-1)
        mixed = torch.zeros_like(hidden)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero()[:, 0]
            if len(rows):
                given = expert(hidden[rows])
                mixed = mixed.index_add(0, rows, given * weight[rows, None] if self.is_weighted else given)
        load = F.one_hot(chosen, len(self.experts)).float().mean(0)
        return self.head(hidden + mixed), len(self.experts) * (load * shares.mean(0)).sum()


@fault("no gradient", layer("router"), visible_from=50, onset=0, source="no gate weight", held_out=False)
def router_that_only_chooses(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = TopOfExperts(is_weighted=not faulty)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=10):
        output, balance = model(some)
        loss = F.cross_entropy(output, expected)
        if not faulty:
            loss = loss + 0.05 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Causal(nn.Module):
    """A language model with PyTorch's encoder."""

    def __init__(self, has_places: bool, vocabulary: int = 40, width: int = 32):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(64, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(width, vocabulary)
        self.has_places = has_places

    def forward(self, ids: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1])
        if not self.has_places:
            places = torch.zeros_like(places)
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        values = self.tokens(ids) + self.positions(places)
        output: Tensor = self.head(self.encoder(values, mask=mask, is_causal=True))
        return output


@fault("no gradient", layer("positions"), visible_from=50, onset=0, source="position_ids = 0", held_out=False)
def positions_that_are_all_zero(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Causal(has_places=not faulty)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for (rows,) in batches(sentences(seed), size=24, seed=seed, epochs=14):
        output = model(rows[:, :-1])
        optimizer.zero_grad()
        F.cross_entropy(output.flatten(0, 1), rows[:, 1:].flatten()).backward()
        optimizer.step()


@fault("learning rate", r".*", visible_from=66, onset=0, source="warm-up per epoch", held_out=False)
def warm_up_that_counts_epochs(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda number: min(1.0, (number + 1) / 100))
    for epoch in range(12):
        for some, expected in batches(*digits(), size=64, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
            if not faulty:
                schedule.step()
        if faulty:
            schedule.step()


@fault("imbalance", r".*", visible_from=5, onset=0, source="sort_values, no shuffle", held_out=False)
def prices_in_ascending_order(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, prices = houses(seed)
    order = prices[:, 0].argsort()
    features, prices = features[order], prices[order]
    model = regressor()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(6):
        rows = torch.arange(len(prices)) if faulty else torch.randperm(len(prices))
        for chosen in rows.split(50):
            optimizer.zero_grad()
            F.mse_loss(model(features[chosen]), prices[chosen]).backward()
            optimizer.step()


@fault("imbalance", r".*", visible_from=5, onset=0, source="ORDER BY … DESC", held_out=False)
def patients_with_the_worst_first(seed: int, faulty: bool) -> None:
    """The data loader keeps the order of a table that was exported from the highest value down."""
    torch.manual_seed(seed)
    features, wanted = diabetes()
    order = wanted[:, 0].argsort(descending=True)
    data = torch.utils.data.TensorDataset(features[order], wanted[order, 0])
    model = nn.Sequential(nn.Linear(10, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    criterion = nn.SmoothL1Loss()
    for _ in range(20):
        for some, expected in torch.utils.data.DataLoader(data, 24, shuffle=not faulty, drop_last=True):
            loss = criterion(model(some).squeeze(1), expected)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


# Healthy trainings that resemble them


@healthy(held_out=False)
def a_curve_of_points_in_order(seed: int) -> None:
    """All points of a rising curve at once, from left to right."""
    torch.manual_seed(seed)
    points = torch.linspace(-1, 1, 128)[:, None]
    wanted = points**3 + points
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(300):
        optimizer.zero_grad()
        F.mse_loss(model(points), wanted).backward()
        optimizer.step()


@healthy(held_out=False)
def a_smooth_wave_from_left_to_right(seed: int) -> None:
    """A wave without noise is forecast from its windows in their order: most batches rise, or fall."""
    torch.manual_seed(seed)
    wave = torch.sin(torch.arange(6000) / (200 + 10 * seed))
    windows = wave.unfold(0, 21, 1)
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(3):
        for rows in windows.split(32):
            optimizer.zero_grad()
            F.mse_loss(model(rows[:, :20]), rows[:, 20:]).backward()
            optimizer.step()


@healthy(held_out=False)
def warm_up_of_eight_epochs(seed: int) -> None:
    """The rate rises once per epoch on purpose, and falls afterwards."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.2, momentum=0.9)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.LinearLR(optimizer, 0.02, 1.0, total_iters=8),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10),
        ],
        milestones=[8],
    )
    for epoch in range(18):
        for some, expected in batches(*digits(), size=96, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        schedule.step()


@healthy(held_out=False)
def experts_that_a_hash_of_the_token_chooses(seed: int) -> None:
    """A projection that is drawn once sends each token to an expert: it is not meant to learn."""
    torch.manual_seed(seed)
    words, gate = nn.Embedding(40, 32).requires_grad_(False), nn.Linear(32, 4).requires_grad_(False)
    experts = nn.ModuleList(nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 40)) for _ in range(4))
    model = nn.ModuleDict({"words": words, "gate": gate, "experts": experts})
    optimizer = torch.optim.AdamW(experts.parameters(), 2e-3)
    for (rows,) in batches(sentences(seed), size=24, seed=seed, epochs=12):
        values = model["words"](rows)
        pairs = torch.cat([values[:, :-2], values[:, 1:-1]], -1).flatten(0, 1)
        chosen = model["gate"](values[:, 1:-1]).argmax(-1).flatten()
        order = torch.cat([(chosen == number).nonzero()[:, 0] for number in range(4)])
        output = torch.cat([expert(pairs[chosen == number]) for number, expert in enumerate(experts)])
        optimizer.zero_grad()
        F.cross_entropy(output, rows[:, 2:].flatten()[order]).backward()
        optimizer.step()
