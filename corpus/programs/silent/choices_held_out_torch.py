"""Faults of what a model chooses and how it is set. No rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy, layer
from corpus.programs.data import batches, diabetes, digit_images, digits
from corpus.programs.modern_parts import texts


class Sparse(nn.Module):
    """A feed-forward layer of six experts; each token takes the `taken` that the gate finds best."""

    def __init__(self, width: int, taken: int, count: int = 6):
        super().__init__()
        self.gate = nn.Linear(width, count, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width)) for _ in range(count)
        )
        self.taken = taken

    def forward(self, values: Tensor) -> Tensor:
        tokens = values.flatten(0, 1)
        best, chosen = self.gate(tokens).topk(self.taken, -1)
        weights = best.softmax(-1)  # of the chosen ones alone
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows, slot = (chosen == number).nonzero(as_tuple=True)
            if len(rows):
                mixed = mixed.index_add(0, rows, expert(tokens[rows]) * weights[rows, slot, None])
        return mixed.view_as(values)


class Reader(nn.Module):
    """A language model of two recurrent blocks, each with a sparse layer behind it."""

    def __init__(self, taken: int, vocabulary: int = 24, width: int = 24):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict({"mix": nn.GRU(width, width, batch_first=True), "moe": Sparse(width, taken)})
            for _ in range(2)
        )
        self.lm_head = nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor) -> Tensor:
        values = self.embed(ids)
        for block in self.blocks:
            values = values + block["mix"](values)[0]
            values = values + block["moe"](values)
        output: Tensor = self.lm_head(values)
        return output


@fault("no gradient", r"gate", visible_from=50, onset=0, source="softmax of the top 1", held_out=True)
def softmax_over_the_one_chosen_expert(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Reader(taken=1 if faulty else 2)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for (ids,) in batches(texts(seed)[0], size=32, seed=seed, epochs=8):
        loss = F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Tagger(nn.Module):
    """Classifies texts with one block of attention; positions are counted along the mask."""

    def __init__(self, vocabulary: int = 24, width: int = 32):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(20, width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 3)

    def forward(self, ids: Tensor, mask: Tensor, counted: Tensor) -> Tensor:
        places = (counted.cumsum(1) - 1).clamp(min=0)
        values = self.wte(ids) + self.wpe(places)
        values = values + self.attention(values, values, values, key_padding_mask=mask == 0)[0]
        kept = mask[..., None].float()
        output: Tensor = self.head((self.norm(values) * kept).sum(1) / kept.sum(1))
        return output


@fault("no gradient", layer("wpe"), visible_from=50, onset=0, source="positions of no mask", held_out=True)
def positions_counted_along_an_empty_mask(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    ids, mask = texts(seed, 1200)
    labels = (ids[:, 0] + (ids[:, 1] > 12)) % 3
    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for some, seen, expected in batches(ids, mask, labels, size=40, seed=seed, epochs=8):
        output = model(some, seen, torch.zeros_like(seen) if faulty else seen)
        optimizer.zero_grad()
        F.cross_entropy(output, expected).backward()
        optimizer.step()


@fault("learning rate", r".*", visible_from=96, onset=0, source="LinearLR per epoch", held_out=True)
def linear_warm_up_stepped_behind_the_epoch(seed: int, faulty: bool) -> None:
    """A convolutional network with two groups of parameters; the warm-up was written for 400 steps."""
    torch.manual_seed(seed)
    images, labels = digit_images()
    body = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 12, 3, stride=2), nn.ReLU())
    model = nn.Sequential(body, nn.Flatten(), nn.Linear(108, 10))
    optimizer = torch.optim.SGD(
        [{"params": body.parameters(), "lr": 0.05}, {"params": model[2].parameters(), "lr": 0.1}],
        momentum=0.9,
    )
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1e-3, 1.0, total_iters=400 if faulty else 60)
    for epoch in range(7):
        for some, expected in batches(images, labels, size=45, seed=seed + epoch, epochs=1):
            loss = F.cross_entropy(model(some), expected)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if not faulty:
                schedule.step()
        if faulty:
            schedule.step()


@fault("learning rate", r".*", visible_from=60, onset=0, source="warm-up in on_epoch_end", held_out=True)
def warm_up_of_a_regression_per_epoch(seed: int, faulty: bool) -> None:
    """A regression whose warm-up of 500 steps is stepped at the end of each epoch."""
    torch.manual_seed(seed)
    features, wanted = diabetes()
    model = nn.Sequential(nn.Linear(10, 48), nn.Tanh(), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: min(1.0, done / 500 + 1e-3))
    for epoch in range(25):
        for some, expected in batches(features, wanted, size=32, seed=seed + epoch, epochs=1):
            if not faulty:
                schedule.step()
            optimizer.zero_grad()
            F.mse_loss(model(some), expected).backward()
            optimizer.step()
        if faulty:
            schedule.step()


@fault("imbalance", r".*", visible_from=5, onset=0, source="file sorted by length", held_out=True)
def lengths_of_texts_from_short_to_long(seed: int, faulty: bool) -> None:
    """A recurrent network estimates a number of each text, and the file is in the order of that number."""
    torch.manual_seed(seed)
    ids, mask = texts(seed, 1200)
    wanted = (ids * mask).sum(1).float() / 100
    order = wanted.sort().indices
    words, memory, head = nn.Embedding(24, 16), nn.GRU(16, 32, batch_first=True), nn.Linear(32, 1)
    model = nn.ModuleDict({"words": words, "memory": memory, "head": head})
    optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
    for _ in range(5):
        taken = order if faulty else order[torch.randperm(len(order))]
        for chosen in taken.split(30):
            estimate = head(memory(words(ids[chosen]))[1][0])[:, 0]
            optimizer.zero_grad()
            F.l1_loss(estimate, wanted[chosen]).backward()
            optimizer.step()


@fault("imbalance", r".*", visible_from=5, onset=0, source="np.argsort of the ages", held_out=True)
def faces_from_young_to_old(seed: int, faulty: bool) -> None:
    """Images whose number is to be estimated lie in the order of that number, and the batches, too."""
    torch.manual_seed(seed)
    pictures, _ = digit_images()
    ages = 10 * (pictures.mean((1, 2, 3)) + 0.05 * torch.randn(len(pictures)))
    order = ages.argsort()
    pictures, ages = pictures[order], ages[order]
    trunk = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten())
    model = nn.Sequential(trunk, nn.Linear(288, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    criterion = nn.MSELoss()
    for _ in range(4):
        rows = torch.arange(len(ages)) if faulty else torch.randperm(len(ages))
        for chosen in rows.split(60):
            loss = criterion(model(pictures[chosen]).flatten(), ages[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


# Healthy trainings that resemble them


@healthy(held_out=True)
def measurements_from_sure_to_unsure(seed: int) -> None:
    """A curriculum: rows with little noise come first, whatever their targets are."""
    torch.manual_seed(seed)
    given = torch.randn(3000, 6)
    trouble = torch.rand(3000).sort().values
    wanted = given[:, :1] * given[:, 1:2] + trouble[:, None] * torch.randn(3000, 1)
    model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(6):
        for rows in torch.arange(3000).split(60):
            optimizer.zero_grad()
            F.mse_loss(model(given[rows]), wanted[rows]).backward()
            optimizer.step()


@healthy(held_out=True)
def windows_of_a_trend_in_their_order(seed: int) -> None:
    """A forecast of a noisy series that rises, learned from left to right without a shuffle."""
    torch.manual_seed(seed)
    time = torch.arange(2400) / 100
    series = 0.3 * time + torch.sin(5 * time) + 0.2 * torch.randn(2400)
    series = (series - series.mean()) / series.std()
    windows = series.unfold(0, 25, 1)
    model = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(8):
        for rows in windows.split(64):
            optimizer.zero_grad()
            F.mse_loss(model(rows[:, :24])[:, 0], rows[:, 24]).backward()
            optimizer.step()


@healthy(held_out=True)
def accumulated_passes_with_a_long_warm_up(seed: int) -> None:
    """The schedule is stepped with the optimizer, once in eight passes, and the training ends within it."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.AdamW(model.parameters(), 2e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.05, 1.0, total_iters=300)
    for number, (some, expected) in enumerate(batches(*digits(), size=16, seed=seed, epochs=12)):
        (F.cross_entropy(model(some), expected) / 8).backward()
        if number % 8 == 7:
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()


@healthy(held_out=True)
def sentences_of_a_single_kind_of_token(seed: int) -> None:
    """A table of kinds has two rows, of which texts without a second part use one."""
    torch.manual_seed(seed)
    ids, mask = texts(seed, 1200)
    labels = (ids[:, 2] > 12).long()
    words, kinds, places = nn.Embedding(24, 32), nn.Embedding(2, 32), nn.Embedding(20, 32)
    encoder = nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
    model = nn.ModuleDict(
        {"words": words, "token_types": kinds, "position_embeddings": places, "encoder": encoder}
    )
    model["head"] = nn.Linear(32, 2)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for some, seen, expected in batches(ids, mask, labels, size=40, seed=seed, epochs=7):
        values = words(some) + kinds(torch.zeros_like(some)) + places(torch.arange(some.shape[1]))
        values = encoder(values, src_key_padding_mask=seen == 0)
        optimizer.zero_grad()
        F.cross_entropy(model["head"](values[:, 2]), expected).backward()
        optimizer.step()
