"""Healthy trainings as longer scripts write them: data loaders, datasets and models in classes, schedules.

Most were not shown to the rules. It is long because each program stands alone, as people write them.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import torch
from sklearn import datasets
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils import parametrizations
from torch.utils.data import DataLoader, Dataset, TensorDataset

from corpus.cases import healthy


class Digits(Dataset[tuple[Tensor, int]]):
    """Images of digits, normalised, with a little shift as augmentation."""

    def __init__(self, part: str, shift: bool = False):
        bunch = datasets.load_digits()
        order = np.random.default_rng(3).permutation(len(bunch.target))
        chosen = order[:1400] if part == "train" else order[1400:]
        self.images = torch.tensor(bunch.images[chosen], dtype=torch.float32)[:, None]
        self.images = (self.images / 16 - 0.3) / 0.37
        self.labels = [int(label) for label in bunch.target[chosen]]
        self.shift = shift

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        image = self.images[row]
        if self.shift:
            image = image.roll(int(torch.randint(-1, 2, ())), 2)
        return image, self.labels[row]


def loader(data: Dataset[Any], seed: int, size: int = 64, **more: Any) -> DataLoader[Any]:
    """A shuffled loader whose order the seed decides."""
    generator = torch.Generator().manual_seed(seed)
    return DataLoader(data, size, shuffle=True, generator=generator, **more)


class PatchTransformer(nn.Module):
    """A small vision transformer with a class token, learnt positions and stochastic depth."""

    def __init__(self, width: int = 48, depth: int = 3):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 2, stride=2)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 17, width) * 0.02)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 2 * width, 0.1, activation="gelu", batch_first=True, norm_first=True
            )
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)
        nn.init.zeros_(self.head.weight)

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.patches(images).flatten(2).transpose(1, 2)
        hidden = torch.cat([self.token.expand(len(images), -1, -1), hidden], 1) + self.places
        for block in self.blocks:
            if self.training and torch.rand(()) < 0.1:
                continue
            hidden = block(hidden)
        return self.head(self.norm(hidden)[:, 0])


@healthy(held_out=True)
def vision_transformer_with_stochastic_depth(seed: int) -> float:
    """A head that starts at zero, decay for matrices alone, warm-up and cosine, blocks that are skipped."""
    torch.manual_seed(seed)
    model = PatchTransformer()
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}], 2e-3
    )
    train, test = loader(Digits("train", shift=True), seed), DataLoader(Digits("test"), 200)
    total = 8 * len(train)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / 20, 0.5 * (1 + math.cos(math.pi * step / total))),
    )
    right = 0
    for _ in range(8):
        model.train()
        for images, labels in train:
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(images), labels, label_smoothing=0.1).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.inference_mode():
            right = sum(int((model(x).argmax(1) == y).sum()) for x, y in test)
    return right / 397


class Denoiser(nn.Module):
    """Down, up, and the way around."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU())
        self.down = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.SiLU())
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.last = nn.Conv2d(32, 1, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        outer = self.inner(images)
        return self.last(torch.cat([outer, self.up(self.down(outer))], 1))


@healthy(held_out=True)
def denoiser_with_skip_connections(seed: int) -> float:
    torch.manual_seed(seed)
    model, criterion = Denoiser(), nn.L1Loss()
    optimizer = torch.optim.NAdam(model.parameters(), 2e-3)
    total = 0.0
    for _ in range(6):
        for images, _ in loader(Digits("train"), seed, drop_last=True):
            loss = criterion(model(images + 0.5 * torch.randn_like(images)), images)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total = loss.item()
    return total


@healthy(held_out=True)
def quantiles_of_a_regression(seed: int) -> float:
    """Three outputs, each for a quantile; the pinball loss has its floor far above zero."""
    torch.manual_seed(seed)
    features, target = datasets.make_regression(800, 12, noise=40, random_state=seed)
    target = target / target.std()
    data = TensorDataset(torch.tensor(features).float(), torch.tensor(target).float())
    model = nn.Sequential(nn.Linear(12, 40), nn.ELU(), nn.Linear(40, 3))
    optimizer = torch.optim.Adamax(model.parameters(), 5e-3)
    quantiles = torch.tensor([0.1, 0.5, 0.9])
    total = 0.0
    for _ in range(15):
        for some, wanted in loader(data, seed):
            off = wanted[:, None] - model(some)
            loss = torch.maximum(quantiles * off, (quantiles - 1) * off).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total = loss.item()
    return total


@healthy(held_out=True)
def skip_grams_with_negative_samples(seed: int) -> float:
    """Two embeddings and nothing else; a step touches few of their rows."""
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    words = torch.tensor(random.zipf(1.5, 6000).clip(max=300) - 1)
    pairs = TensorDataset(words[:-1], (words[1:] + words[:-1]) % 300)
    centre, context = nn.Embedding(300, 16, sparse=True), nn.Embedding(300, 16, sparse=True)
    optimizer = torch.optim.Adagrad([*centre.parameters(), *context.parameters()], 0.2)
    total = 0.0
    for _ in range(3):
        for word, other in loader(pairs, seed, size=100):
            negative = torch.randint(300, (len(word), 5))
            near = (centre(word) * context(other)).sum(1)
            far = (centre(word)[:, None] * context(negative)).sum(2)
            loss = -F.logsigmoid(near).mean() - F.logsigmoid(-far).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total = loss.item()
    return total


@healthy(held_out=True)
def training_against_adversarial_inputs(seed: int) -> float:
    """Three forward and backward passes look for a bad input before the one that trains."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Conv2d(1, 12, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12 * 36, 32), nn.ReLU())
    model.append(nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, nesterov=True)
    total = 0.0
    for _ in range(5):
        for images, labels in loader(Digits("train"), seed):
            change = torch.zeros_like(images, requires_grad=True)
            for _ in range(3):
                (slope,) = torch.autograd.grad(F.cross_entropy(model(images + change), labels), change)
                change = (change + 0.1 * slope.sign()).clamp(-0.2, 0.2).detach().requires_grad_()
            loss = F.cross_entropy(model(images + change.detach()), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total = loss.item()
    return total


class Rollout:
    """What an agent saw: kept for several epochs of updates."""

    def __init__(self, policy: nn.Module, best: Tensor, count: int = 128):
        self.states = torch.randn(count, 6)
        with torch.no_grad():
            choice = torch.distributions.Categorical(logits=policy(self.states)[:, :3])
            self.actions = choice.sample()
            self.chances = choice.log_prob(self.actions)
        self.returns = (self.actions == (self.states @ best).argmax(1)).float()


@healthy(held_out=True)
def proximal_policy_optimisation(seed: int) -> float:
    """Each rollout is used as a whole for four updates: the same input again, by design."""
    torch.manual_seed(seed)
    policy = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
    policy.append(nn.Linear(32, 4))
    optimizer = torch.optim.Adam(policy.parameters(), 3e-3, eps=1e-5)
    best = torch.randn(6, 3)
    reward = 0.0
    for _ in range(50):
        seen = Rollout(policy, best)
        for _ in range(4):
            output = policy(seen.states)
            choice = torch.distributions.Categorical(logits=output[:, :3])
            worth = output[:, 3]
            advantage = seen.returns - worth.detach()
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            ratio = (choice.log_prob(seen.actions) - seen.chances).exp()
            gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
            loss = -gain + 0.5 * F.mse_loss(worth, seen.returns) - 0.01 * choice.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
        reward = float(seen.returns.mean())
    return reward


@healthy(held_out=True)
def bootstrapped_representations(seed: int) -> float:
    """An online network predicts what its own moving average makes of another view."""
    torch.manual_seed(seed)
    online = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))
    predictor = nn.Sequential(nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 32))
    target = copy.deepcopy(online)
    for parameter in target.parameters():
        parameter.requires_grad = False
    optimizer = torch.optim.AdamW([*online.parameters(), *predictor.parameters()], 2e-3)
    total = 0.0
    for _ in range(6):
        for images, _ in loader(Digits("train"), seed, drop_last=True):
            first, second = (images + 0.3 * torch.randn_like(images) for _ in range(2))
            with torch.no_grad():
                aims = target(second), target(first)
            given = predictor(online(first)), predictor(online(second))
            loss = 2 - sum(F.cosine_similarity(a, b).mean() for a, b in zip(given, aims, strict=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for kept, new in zip(target.parameters(), online.parameters(), strict=True):
                    kept.lerp_(new, 0.02)
            total = float(loss.detach())
    return total


class Sine(nn.Module):
    def __init__(self, given: int, width: int, scale: float):
        super().__init__()
        self.linear = nn.Linear(given, width)
        bound = 1 / given if given == 2 else math.sqrt(6 / width) / scale
        nn.init.uniform_(self.linear.weight, -bound, bound)
        self.scale = scale

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.sin(self.scale * self.linear(inputs))


@healthy(held_out=True)
def image_as_a_function_of_its_places(seed: int) -> float:
    """A network of sines fits one picture: the same 256 coordinates are the input of every step."""
    torch.manual_seed(seed)
    picture = torch.tensor(datasets.load_digits().images[seed : seed + 4], dtype=torch.float32) / 8
    picture = torch.cat([torch.cat([*picture[:2]], 1), torch.cat([*picture[2:]], 1)], 0) - 1
    axis = torch.linspace(-1, 1, 16)
    places = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).view(-1, 2)
    model = nn.Sequential(Sine(2, 48, 10.0), Sine(48, 48, 10.0), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    loss = torch.zeros(())
    for _ in range(300):
        loss = (model(places) - picture.view(-1, 1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@healthy(held_out=True)
def physics_in_the_loss(seed: int) -> float:
    """In float64, with derivatives by the input in the loss: u'' = -u with u(0)=0, u'(0)=1."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh())
    model.append(nn.Linear(24, 1))
    model.double()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    start = torch.zeros(1, 1, dtype=torch.float64)
    loss = torch.zeros(())
    for _ in range(250):
        time = torch.cat([start, 3 * torch.rand(63, 1, dtype=torch.float64)]).requires_grad_()
        place = model(time)
        (speed,) = torch.autograd.grad(place.sum(), time, create_graph=True)
        (change,) = torch.autograd.grad(speed.sum(), time, create_graph=True)
        loss = (change + place).square().mean()
        loss = loss + place[0].square().sum() + (speed[0] - 1).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@healthy(held_out=False)
def rate_that_falls_on_a_plateau(seed: int) -> float:
    """ReduceLROnPlateau with early stopping, on standardised wines."""
    torch.manual_seed(seed)
    features, labels = datasets.load_wine(return_X_y=True)
    features = (features - features.mean(0)) / features.std(0)
    rows = TensorDataset(torch.tensor(features).float(), torch.tensor(labels))
    train, rest = torch.utils.data.random_split(
        rows, [138, 40], generator=torch.Generator().manual_seed(seed)
    )
    model = nn.Sequential(nn.Linear(13, 24), nn.LeakyReLU(), nn.Dropout(0.2), nn.Linear(24, 3))
    optimizer = torch.optim.RMSprop(model.parameters(), 5e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=2)
    best, waited = math.inf, 0
    while waited < 6:
        model.train()
        for some, expected in loader(train, seed, size=23):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            some, expected = next(iter(DataLoader(rest, 40)))
            held = F.cross_entropy(model(some), expected).item()
        schedule.step(held)
        best, waited = (held, 0) if held < best - 1e-3 else (best, waited + 1)
    return best


@healthy(held_out=True)
def speech_like_alignment(seed: int) -> float:
    """Connectionist temporal classification: sequences of several lengths, blanks nearly everywhere."""
    torch.manual_seed(seed)
    sounds = torch.randn(9, 8)
    listener = nn.GRU(8, 40, batch_first=True, bidirectional=True)
    speller = nn.Linear(80, 9)
    criterion = nn.CTCLoss(zero_infinity=True)
    optimizer = torch.optim.AdamW([*listener.parameters(), *speller.parameters()], 6e-3)
    total = 0.0
    for _ in range(120):
        words = torch.randint(1, 9, (24, 5))
        heard = sounds[words].repeat_interleave(3, 1) + 0.3 * torch.randn(24, 15, 8)
        lengths = torch.randint(3, 6, (24,))
        scores = speller(listener(heard)[0]).log_softmax(2).transpose(0, 1)
        loss = criterion(scores, words, lengths * 3, lengths)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([*listener.parameters(), *speller.parameters()], 5.0)
        optimizer.step()
        total = loss.item()
    return total


@healthy(held_out=True)
def triplets_with_a_margin(seed: int) -> float:
    """Once all triplets are far enough apart, the loss is zero and so is every gradient."""
    torch.manual_seed(seed)
    data = Digits("train")
    images, labels = data.images.flatten(1), torch.tensor(data.labels)
    of_class = [torch.nonzero(labels == digit)[:, 0] for digit in range(10)]
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 16))
    criterion = nn.TripletMarginLoss(margin=0.3)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    total = 0.0
    for _ in range(250):
        rows = torch.randint(len(images), (32,))
        same = torch.stack([_any_of(of_class[labels[row]]) for row in rows])
        other = torch.stack([_any_of(of_class[(labels[row] + 3) % 10]) for row in rows])
        loss = criterion(*(F.normalize(model(images[part])) for part in (rows, same, other)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.item()
    return total


def _any_of(rows: Tensor) -> Tensor:
    return rows[torch.randint(len(rows), ())]


@healthy(held_out=True)
def counts_with_a_logarithmic_link(seed: int) -> float:
    """Poisson regression: outputs are logarithms of rates, and the loss is negative."""
    torch.manual_seed(seed)
    features = torch.randn(1200, 6)
    counts = torch.poisson((1.5 + features @ torch.randn(6) * 0.5).clamp(max=4).exp())
    model = nn.Sequential(nn.Linear(6, 24), nn.Softplus(), nn.Linear(24, 1))
    criterion = nn.PoissonNLLLoss()
    optimizer = torch.optim.Adam(model.parameters(), 4e-3, amsgrad=True)
    total = 0.0
    for _ in range(12):
        for some, wanted in loader(TensorDataset(features, counts), seed, size=60):
            loss = criterion(model(some)[:, 0], wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total = loss.item()
    return total


class Quantised(nn.Linear):
    """A layer whose weights are rounded to 15 values in the forward pass alone."""

    def forward(self, inputs: Tensor) -> Tensor:
        scale = self.weight.detach().abs().max() / 7
        rounded = (self.weight / scale).round() * scale
        return F.linear(inputs, self.weight + (rounded - self.weight).detach(), self.bias)


@healthy(held_out=True)
def training_for_rounded_weights(seed: int) -> float:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), Quantised(64, 64), nn.Hardswish(), Quantised(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(8):
        for images, labels in loader(Digits("train"), seed):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
    return float(F.cross_entropy(model(images), labels).detach())


class SignDescent(torch.optim.Optimizer):
    """An optimizer from a paper: the sign of a moving average, with decoupled decay."""

    def __init__(self, parameters: Any, rate: float, decay: float):
        super().__init__(parameters, {"lr": rate, "decay": decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                average = state.setdefault("average", torch.zeros_like(parameter))
                parameter.mul_(1 - group["lr"] * group["decay"])
                parameter.sub_(group["lr"] * average.lerp(parameter.grad, 0.1).sign())
                average.lerp_(parameter.grad, 0.01)


@healthy(held_out=True)
def optimizer_from_a_paper(seed: int) -> float:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.InstanceNorm2d(16, affine=True), nn.ReLU())
    model.extend([nn.AvgPool2d(2), nn.Flatten(), nn.Linear(256, 10)])
    optimizer = SignDescent(model.parameters(), 5e-4, 0.1)
    for _ in range(7):
        for images, labels in loader(Digits("train"), seed):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
    return float(F.cross_entropy(model(images), labels).detach())


@healthy(held_out=True)
def normalised_weights_against_each_other(seed: int) -> float:
    """A generator with weight norm against a discriminator with spectral norm, by the hinge loss."""
    torch.manual_seed(seed)
    maker = nn.Sequential(parametrizations.weight_norm(nn.Linear(8, 48)), nn.ReLU())
    maker.append(nn.Linear(48, 2))
    judge = nn.Sequential(parametrizations.spectral_norm(nn.Linear(2, 48)), nn.LeakyReLU(0.1))
    judge.append(parametrizations.spectral_norm(nn.Linear(48, 1)))
    makes = torch.optim.Adam(maker.parameters(), 1e-3, betas=(0.5, 0.9))
    judges = torch.optim.Adam(judge.parameters(), 4e-3, betas=(0.5, 0.9))
    points = torch.tensor(datasets.make_moons(800, noise=0.05, random_state=seed)[0]).float()
    total = 0.0
    for _ in range(12):
        for (real,) in loader(TensorDataset(points), seed, size=50):
            made = maker(torch.randn(50, 8))
            loss = F.relu(1 - judge(real)).mean() + F.relu(1 + judge(made.detach())).mean()
            judges.zero_grad()
            loss.backward()
            judges.step()
            makes.zero_grad()
            (-judge(made).mean()).backward()
            makes.step()
            total = loss.item()
    return total
