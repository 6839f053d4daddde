"""Healthy trainings with PyTorch, of the kinds that people run.

It is long because each program stands alone, as people write them.
"""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.checkpoint import checkpoint

from corpus.cases import healthy
from corpus.programs.data import (
    batches,
    cancer,
    diabetes,
    digit_images,
    digits,
    parts,
    sentences,
    spirals,
)


def classifier(width: int = 64, dropout: float = 0.0) -> nn.Sequential:
    """A network for the digits, with two hidden layers."""
    return nn.Sequential(
        nn.Linear(64, width),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(width, 10),
    )


def validate(model: nn.Module, inputs: Tensor, labels: Tensor, size: int = 120) -> float:
    """The accuracy on validation data, in evaluation mode."""
    model.eval()
    criterion = nn.CrossEntropyLoss()
    right = 0
    with torch.no_grad():
        for some, expected in parts(inputs, labels, size=size):
            output = model(some)
            criterion(output, expected)
            right += int((output.argmax(1) == expected).sum())
    model.train()
    return right / len(labels)


def train_classifier(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    seed: int,
    *,
    epochs: int = 12,
    size: int = 64,
) -> float:
    """Train on the digits with validation after each epoch; the last accuracy."""
    criterion = nn.CrossEntropyLoss()
    inputs, labels = digits()
    accuracy = 0.0
    for epoch in range(epochs):
        for some, expected in batches(inputs, labels, size=size, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            criterion(model(some), expected).backward()
            optimizer.step()
        accuracy = validate(model, *digits(validation=True))
    return accuracy


@healthy(held_out=False)
def mlp_on_digits(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    return train_classifier(model, torch.optim.Adam(model.parameters(), 1e-3), seed)


@healthy(held_out=True)
def mlp_with_plain_sgd(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    return train_classifier(model, torch.optim.SGD(model.parameters(), 0.1), seed)


@healthy(held_out=False)
def sgd_with_momentum_of_99_percent(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    return train_classifier(model, torch.optim.SGD(model.parameters(), 2e-3, momentum=0.99), seed)


@healthy(held_out=True)
def adam_with_a_large_epsilon(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    return train_classifier(model, torch.optim.Adam(model.parameters(), 2e-3, eps=1e-3), seed)


@healthy(held_out=False)
def dropout_of_one_half(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier(width=128, dropout=0.5)
    return train_classifier(model, torch.optim.Adam(model.parameters(), 1e-3), seed)


@healthy(held_out=True)
def weight_decay_towards_zero(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    return train_classifier(model, torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.5), seed)


@healthy(held_out=False)
def logistic_regression(seed: int) -> float:
    torch.manual_seed(seed)
    model = nn.Linear(64, 10)
    return train_classifier(model, torch.optim.SGD(model.parameters(), 0.5), seed)


class Convolutional(nn.Module):
    """Convolutions, each before a batch normalisation."""

    def __init__(self, bias: bool):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=bias)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=bias)
        self.norm2 = nn.BatchNorm2d(32)
        self.head = nn.Linear(32 * 4, 10)

    def forward(self, images: Tensor) -> Tensor:
        images = F.max_pool2d(F.relu(self.norm1(self.conv1(images))), 2)
        images = F.max_pool2d(F.relu(self.norm2(self.conv2(images))), 2)
        return self.head(images.flatten(1))


def train_on_images(model: nn.Module, seed: int, *, rate: float = 2e-3, epochs: int = 6) -> float:
    """Train on the images of digits with validation after each epoch; the last accuracy."""
    optimizer = torch.optim.Adam(model.parameters(), rate)
    images, labels = digit_images()
    accuracy = 0.0
    for epoch in range(epochs):
        for some, expected in batches(images, labels, size=64, seed=seed + epoch, epochs=1):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        accuracy = validate(model, *digit_images(validation=True))
    return accuracy


@healthy(held_out=False)
def cnn_with_biases_before_batch_norm(seed: int) -> float:
    torch.manual_seed(seed)
    return train_on_images(Convolutional(bias=True), seed)


@healthy(held_out=True)
def cnn_without_biases(seed: int) -> float:
    torch.manual_seed(seed)
    return train_on_images(Convolutional(bias=False), seed)


class Block(nn.Module):
    """A residual block whose last scale starts at zero, so that it starts as the identity."""

    def __init__(self, channels: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        nn.init.zeros_(self.norm2.weight)

    def forward(self, images: Tensor) -> Tensor:
        inner = F.relu(self.norm1(self.conv1(images)))
        return F.relu(images + self.norm2(self.conv2(inner)))


@healthy(held_out=True)
def resnet_whose_blocks_start_at_zero(seed: int) -> float:
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        Block(16),
        nn.MaxPool2d(2),
        Block(16),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )
    return train_on_images(model, seed, rate=5e-3)


class LanguageModel(nn.Module):
    """An LSTM that predicts the next token."""

    def __init__(self, vocabulary: int = 40, width: int = 48):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden, _ = self.lstm(self.embedding(tokens))
        return self.head(hidden)


def train_on_sentences(
    model: nn.Module,
    seed: int,
    *,
    steps_of: int = 20,
    rate: float = 5e-3,
    clip: float | None = None,
) -> float:
    """Train on made sentences; the last loss."""
    optimizer = torch.optim.Adam(model.parameters(), rate)
    tokens = sentences(seed, count=512)
    loss = torch.zeros(())
    for (some,) in batches(tokens, size=64, seed=seed, epochs=steps_of):
        output = model(some[:, :-1])
        loss = F.cross_entropy(output.flatten(0, 1), some[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=False)
def lstm_language_model(seed: int) -> float:
    torch.manual_seed(seed)
    return train_on_sentences(LanguageModel(), seed)


@healthy(held_out=True)
def clipping_that_always_clips(seed: int) -> float:
    torch.manual_seed(seed)
    return train_on_sentences(LanguageModel(), seed, clip=0.05)


class TransformerModel(nn.Module):
    """A small decoder; `tied` shares the embedding with the head."""

    def __init__(self, vocabulary: int = 40, width: int = 32, *, tied: bool = False):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.randn(64, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            nn.init.normal_(self.embedding.weight, std=0.02)
            self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        hidden = self.embedding(tokens) + self.places[:length]
        return self.head(self.layers(hidden, mask=mask, is_causal=True))


@healthy(held_out=False)
def transformer_language_model(seed: int) -> float:
    torch.manual_seed(seed)
    return train_on_sentences(TransformerModel(), seed, rate=3e-3)


@healthy(held_out=True)
def tied_weights(seed: int) -> float:
    torch.manual_seed(seed)
    return train_on_sentences(TransformerModel(tied=True), seed, rate=3e-3)


@healthy(held_out=False)
def fine_tuning_with_frozen_layers(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    train_classifier(model, torch.optim.Adam(model.parameters(), 2e-3), seed + 1, epochs=4)
    for parameter in [*model[0].parameters(), *model[3].parameters()]:
        parameter.requires_grad_(False)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return train_classifier(model, torch.optim.Adam(trained, 5e-3), seed)


class LowRank(nn.Module):
    """A frozen layer with a trained correction of low rank, which starts at zero."""

    def __init__(self, layer: nn.Linear, rank: int = 4):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(rank, layer.in_features) / math.sqrt(layer.in_features))
        self.lora_b = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layer(inputs) + inputs @ self.lora_a.T @ self.lora_b.T


@healthy(held_out=True)
def low_rank_adaptation(seed: int) -> float:
    torch.manual_seed(seed)
    base = classifier()
    model = nn.Sequential(LowRank(base[0]), nn.ReLU(), LowRank(base[3]), nn.ReLU(), nn.Linear(64, 10))
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return train_classifier(model, torch.optim.Adam(trained, 5e-3), seed)


@healthy(held_out=False)
def generative_adversarial_network(seed: int) -> float:
    torch.manual_seed(seed)
    generator = nn.Sequential(nn.Linear(16, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.Sigmoid())
    critic = nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
    of_generator = torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.5, 0.999))
    of_critic = torch.optim.Adam(critic.parameters(), 5e-4, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    inputs, labels = digits()
    loss = torch.zeros(())
    for real, _ in batches(inputs, labels, size=64, seed=seed, epochs=10):
        made = generator(torch.randn(64, 16))
        loss = criterion(critic(real), torch.full((64, 1), 0.9)) + criterion(
            critic(made.detach()), torch.zeros(64, 1)
        )
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
        of_generator.zero_grad()
        criterion(critic(made), torch.ones(64, 1)).backward()
        of_generator.step()
    return float(loss.detach())


@healthy(held_out=True)
def autoencoder(seed: int) -> float:
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(64, 32),
        nn.ReLU(),
        nn.Linear(32, 8),
        nn.Linear(8, 32),
        nn.ReLU(),
        nn.Linear(32, 64),
    )
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    inputs, _ = digits()
    loss = torch.zeros(())
    for (some,) in batches(inputs, size=64, seed=seed, epochs=12):
        loss = F.mse_loss(model(some), some)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


class VariationalAutoencoder(nn.Module):
    """Mean and spread of eight hidden numbers, and back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 16))
        self.decoder = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 64))

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.encoder(inputs).chunk(2, dim=1)
        hidden = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        return self.decoder(hidden), mean, log_variance


@healthy(held_out=False)
def variational_autoencoder(seed: int) -> float:
    torch.manual_seed(seed)
    model = VariationalAutoencoder()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    inputs, _ = digits()
    loss = torch.zeros(())
    for (some,) in batches(inputs, size=64, seed=seed, epochs=12):
        rebuilt, mean, log_variance = model(some)
        distance = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(1).mean()
        loss = F.mse_loss(rebuilt, some, reduction="none").sum(1).mean() + 0.2 * distance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def bag_of_embeddings(seed: int) -> float:
    torch.manual_seed(seed)
    tokens = sentences(seed, count=800, length=12, vocabulary=200)
    labels = (tokens < 100).sum(1).gt(6).long()
    model = nn.Sequential(nn.EmbeddingBag(200, 16), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    loss = torch.zeros(())
    for some, expected in batches(tokens, labels, size=50, seed=seed, epochs=15):
        loss = F.cross_entropy(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=False)
def bfloat16_autocast(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    inputs, labels = digits()
    for some, expected in batches(inputs, labels, size=64, seed=seed, epochs=8):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(some), expected)
        loss.backward()
        optimizer.step()
    return validate(model, *digits(validation=True))


@healthy(held_out=True)
def accumulated_gradients(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    inputs, labels = digits()
    for number, (some, expected) in enumerate(batches(inputs, labels, size=16, seed=seed, epochs=5)):
        (F.cross_entropy(model(some), expected) / 4).backward()
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    return validate(model, *digits(validation=True))


@healthy(held_out=False)
def regression(seed: int) -> float:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    criterion = nn.MSELoss()
    features, target = diabetes()
    loss = torch.zeros(())
    for epoch in range(20):
        for some, expected in batches(features[:350], target[:350], size=32, seed=epoch, epochs=1):
            optimizer.zero_grad()
            criterion(model(some), expected).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            loss = criterion(model(features[350:]), target[350:])
        model.train()
    return float(loss)


@healthy(held_out=True)
def two_spirals(seed: int) -> float:
    torch.manual_seed(seed)
    points, labels = spirals(seed)
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    criterion = nn.BCEWithLogitsLoss()
    loss = torch.zeros(())
    for some, expected in batches(points, labels, size=100, seed=seed, epochs=80):
        loss = criterion(model(some).squeeze(1), expected.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=False)
def validation_in_many_small_batches(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    inputs, labels = digits()
    accuracy = 0.0
    for epoch in range(5):
        for some, expected in batches(inputs, labels, size=64, seed=epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        accuracy = validate(model, *digits(validation=True), size=4)
    return accuracy


@healthy(held_out=True)
def no_validation_at_all(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    loss = torch.zeros(())
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=12):
        loss = F.cross_entropy(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=False)
def siamese_network(seed: int) -> float:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    inputs, labels = digits()
    loss = torch.zeros(())
    for some, kinds in batches(inputs, labels, size=128, seed=seed, epochs=12):
        left, right = model(some[:64]), model(some[64:])
        same = torch.where(kinds[:64] == kinds[64:], 1.0, -1.0)
        loss = F.cosine_embedding_loss(left, right, same, margin=0.2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def actor_and_critic(seed: int) -> float:
    """A walker on a line is paid for steps to the right."""
    torch.manual_seed(seed)
    body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
    actor, critic = nn.Linear(32, 2), nn.Linear(32, 1)
    parameters = [*body.parameters(), *actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, 3e-3)
    reward = torch.zeros(())
    for _ in range(250):
        state = torch.randn(64, 4)
        hidden = body(state)
        choice = torch.distributions.Categorical(logits=actor(hidden))
        action = choice.sample()
        reward = (action == (state[:, 0] > 0)).float() + 0.1 * torch.randn(64)
        advantage = reward - critic(hidden).squeeze(1)
        loss = (
            -(choice.log_prob(action) * advantage.detach()).mean()
            + 0.5 * advantage.square().mean()
            - 0.01 * choice.entropy().mean()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(reward.mean())


@healthy(held_out=False)
def diffusion_in_two_dimensions(seed: int) -> float:
    torch.manual_seed(seed)
    points, _ = spirals(seed)
    model = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    loss = torch.zeros(())
    for (some,) in batches(points, size=100, seed=seed, epochs=60):
        time = torch.rand(len(some), 1)
        noise = torch.randn_like(some)
        noisy = (1 - time).sqrt() * some * 2 + time.sqrt() * noise
        loss = F.mse_loss(model(torch.cat([noisy, time], 1)), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


class MixtureOfExperts(nn.Module):
    """Four experts, of which the gate takes two for each row."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(64, 4)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)) for _ in range(4)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        weights, chosen = self.gate(inputs).softmax(1).topk(2, dim=1)
        weights = weights / weights.sum(1, keepdim=True)
        output = torch.zeros(len(inputs), 10)
        for number, expert in enumerate(self.experts):
            rows, slot = (chosen == number).nonzero(as_tuple=True)
            if len(rows):
                output = output.index_add(0, rows, expert(inputs[rows]) * weights[rows, slot, None])
        return output


@healthy(held_out=True)
def mixture_of_experts(seed: int) -> float:
    torch.manual_seed(seed)
    model = MixtureOfExperts()
    return train_classifier(model, torch.optim.Adam(model.parameters(), 2e-3), seed, epochs=8)


@healthy(held_out=False)
def cosine_schedule_with_warm_up_and_restarts(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.3, momentum=0.9)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, 1.0, 20),
            torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 80),
        ],
        [20],
    )
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=12):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()
        schedule.step()
    return validate(model, *digits(validation=True))


@healthy(held_out=True)
def one_cycle_schedule(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=264)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=12):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()
        schedule.step()
    return validate(model, *digits(validation=True))


@healthy(held_out=False)
def label_smoothing(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.2)
    loss = torch.zeros(())
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=12):
        loss = criterion(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def mixup(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=12):
        share = float(torch.distributions.Beta(0.4, 0.4).sample())
        order = torch.randperm(len(some))
        output = model(share * some + (1 - share) * some[order])
        loss = share * F.cross_entropy(output, expected)
        loss = loss + (1 - share) * F.cross_entropy(output, expected[order])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return validate(model, *digits(validation=True))


@healthy(held_out=False)
def lbfgs(seed: int) -> float:
    torch.manual_seed(seed)
    features, labels = cancer()
    model = nn.Linear(30, 2)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)
    loss = torch.zeros(())

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy(model(features), labels) + 1e-3 * model.weight.square().sum()
        value.backward()
        return value

    for _ in range(20):
        loss = optimizer.step(closure)
    return float(loss)


@healthy(held_out=True)
def moving_average_of_weights(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=10):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()
        with torch.no_grad():
            for kept, new in zip(average.parameters(), model.parameters(), strict=True):
                kept.lerp_(new, 0.05)
    return validate(average, *digits(validation=True))


class Checkpointed(nn.Module):
    """Hidden layers that are computed again in the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.second = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = checkpoint(self.first, inputs, use_reentrant=False)
        return self.head(checkpoint(self.second, hidden, use_reentrant=False))


@healthy(held_out=False)
def checkpointed_layers(seed: int) -> float:
    torch.manual_seed(seed)
    model = Checkpointed()
    return train_classifier(model, torch.optim.Adam(model.parameters(), 1e-3), seed, epochs=8)


@healthy(held_out=True)
def curriculum(seed: int) -> float:
    """Two classes at first, then more: the loss jumps whenever there are new ones."""
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    inputs, labels = digits()
    for classes in (2, 5, 10):
        easy = labels < classes
        for some, expected in batches(inputs[easy], labels[easy], size=64, seed=seed, epochs=40 // classes):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
    return validate(model, *digits(validation=True))


@healthy(held_out=False)
def resumed_training(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    train_classifier(model, optimizer, seed, epochs=4)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    model.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    return train_classifier(model, optimizer, seed + 100, epochs=4)


@healthy(held_out=True)
def class_weights(seed: int) -> float:
    torch.manual_seed(seed)
    features, labels = cancer()
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.7, 1.0]))
    loss = torch.zeros(())
    for some, expected in batches(features, labels, size=32, seed=seed, epochs=12):
        loss = criterion(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=False)
def imbalanced_but_learnable(seed: int) -> float:
    """One row in twenty is of the rare class."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(2000, 8, generator=generator)
    labels = (features[:, 0] > 1.645).long()
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    loss = torch.zeros(())
    for some, expected in batches(features, labels, size=100, seed=seed, epochs=12):
        loss = F.cross_entropy(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def graph_network(seed: int) -> float:
    """Nodes of a ring of communities, told apart by what their neighbours have."""
    torch.manual_seed(seed)
    community = torch.arange(200) // 50
    likely = torch.where(community[:, None] == community[None], 0.2, 0.01)
    edges = (torch.rand(200, 200) < likely).float()
    edges = ((edges + edges.T + torch.eye(200)) > 0).float()
    edges = edges / edges.sum(1, keepdim=True)
    features = F.one_hot(community, 4).float() + torch.randn(200, 4)
    first, second = nn.Linear(4, 16), nn.Linear(16, 4)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], 1e-2)
    loss = torch.zeros(())
    for _ in range(120):
        output = edges @ second(F.relu(edges @ first(features)))
        loss = F.cross_entropy(output, community)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=False)
def tagging_with_a_gru(seed: int) -> float:
    torch.manual_seed(seed)
    tokens = sentences(seed, count=400)
    tags = (tokens.roll(1, 1) + tokens) % 3
    embedding, gru, head = nn.Embedding(40, 32), nn.GRU(32, 32, batch_first=True), nn.Linear(32, 3)
    parameters = [*embedding.parameters(), *gru.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, 5e-3)
    loss = torch.zeros(())
    for some, expected in batches(tokens, tags, size=40, seed=seed, epochs=15):
        output = head(gru(embedding(some))[0])
        loss = F.cross_entropy(output.flatten(0, 1), expected.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def several_labels_a_row(seed: int) -> float:
    torch.manual_seed(seed)
    inputs, digit = digits()
    labels = torch.stack([digit % 2 == 0, digit > 4, digit % 3 == 0], 1).float()
    model = nn.Sequential(nn.Linear(64, 48), nn.GELU(), nn.Linear(48, 3))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    loss = torch.zeros(())
    for some, expected in batches(inputs, labels, size=64, seed=seed, epochs=12):
        loss = F.binary_cross_entropy_with_logits(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=False)
def contrastive_learning(seed: int) -> float:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    inputs, _ = digits()
    loss = torch.zeros(())
    for (some,) in batches(inputs, size=64, seed=seed, epochs=10):
        views = [F.normalize(model(some + 0.1 * torch.randn_like(some)), dim=1) for _ in range(2)]
        loss = F.cross_entropy(views[0] @ views[1].T / 0.2, torch.arange(64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def matrix_factorisation(seed: int) -> float:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    users, items = (torch.randn(count, 4, generator=generator) for count in (80, 60))
    user = torch.randint(80, (3000,), generator=generator)
    item = torch.randint(60, (3000,), generator=generator)
    rating = (users[user] * items[item]).sum(1) + 0.1 * torch.randn(3000, generator=generator)
    tables = nn.ModuleList([nn.Embedding(80, 8, sparse=True), nn.Embedding(60, 8, sparse=True)])
    optimizer = torch.optim.SparseAdam(list(tables.parameters()), 2e-2)
    loss = torch.zeros(())
    for some, other, expected in batches(user, item, rating, size=100, seed=seed, epochs=12):
        loss = F.mse_loss((tables[0](some) * tables[1](other)).sum(1), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=False)
def deep_network_with_normalisation(seed: int) -> float:
    torch.manual_seed(seed)
    layers: list[nn.Module] = [nn.Linear(64, 48)]
    for _ in range(10):
        layers += [nn.LayerNorm(48), nn.GELU(), nn.Linear(48, 48)]
    model = nn.Sequential(*layers, nn.LayerNorm(48), nn.Linear(48, 10))
    return train_classifier(model, torch.optim.Adam(model.parameters(), 1e-3), seed, epochs=8)


@healthy(held_out=True)
def float16_with_a_loss_scale(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=8):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(some), expected)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return validate(model, *digits(validation=True))
