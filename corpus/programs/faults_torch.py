"""Trainings with PyTorch that have a fault if `faulty` is true, and are healthy twins otherwise.

It is long because each program stands alone, as people write them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, layer, tensor
from corpus.programs.data import batches, cancer, diabetes, digit_images, digits, sentences
from corpus.programs.healthy_torch import (
    Convolutional,
    LanguageModel,
    classifier,
    validate,
)

ONSET = 60
"""The step at which faults begin that are not there from the start."""


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    seed: int,
    *,
    epochs: int = 8,
    with_validation: bool = True,
) -> None:
    """An ordinary training on the digits."""
    for epoch in range(epochs):
        for some, expected in batches(*digits(), size=64, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        if with_validation:
            validate(model, *digits(validation=True))


# Updates


@fault("gradients not reset", ".*", visible_from=1, source="stackoverflow 60335387", held_out=False)
def zero_grad_forgotten(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=6):
        if not faulty:
            optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@fault("lost update", ".*", source="accelerate #2665, pytorch #107843", held_out=False)
def optimizer_of_a_copy(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    trained = copy.deepcopy(model) if faulty else model
    optimizer = torch.optim.Adam(trained.parameters(), 1e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=6):
        model.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@fault("no gradient", "conv|head", source="PyTorch forum 84911", held_out=False)
def all_but_the_normalisation_frozen(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Convolutional(bias=True)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not faulty or "norm" in name)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(trained, 2e-3)
    for some, expected in batches(*digit_images(), size=64, seed=seed, epochs=4):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


class WithoutEffect(torch.optim.Adam):
    """An optimizer whose step leaves one parameter as it was."""

    def __init__(self, parameters: Iterable[nn.Parameter], rate: float, lost: nn.Parameter | None):
        super().__init__(parameters, rate)
        self.lost = lost

    def step(self, closure: None = None) -> None:
        before = None if self.lost is None else self.lost.detach().clone()
        super().step()
        if self.lost is not None and before is not None:
            with torch.no_grad():
                self.lost.copy_(before)


@fault("lost update", tensor("3.weight"), source="pytorch MPS addcmul_, 2025", held_out=True)
def one_layer_whose_step_has_no_effect(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = WithoutEffect(model.parameters(), 1e-3, model[3].weight if faulty else None)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=6):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@fault("lost update", layer("3"), visible_from=ONSET, source="pytorch #115607", held_out=False)
def gradient_that_is_none_from_some_step_on(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step, (some, expected) in enumerate(batches(*digits(), size=64, seed=seed, epochs=8)):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        if faulty and step >= ONSET:
            model[3].weight.grad = None
            model[3].bias.grad = None
        optimizer.step()


class Detached(nn.Module):
    """A body and a head; the body may be cut off."""

    def __init__(self, cut: bool):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 10)
        self.cut = cut

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.body(inputs)
        return self.head(hidden.detach() if self.cut else hidden)


@fault("no gradient", r"body", source=".detach() on the body", held_out=True)
def detached_body(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Detached(faulty)
    train(model, torch.optim.Adam(model.parameters(), 1e-3), seed)


@fault(
    "no gradient",
    layer("0"),
    source="a layer that the optimizer was never given",
    held_out=False,
)
def layer_missing_in_the_optimizer(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    parameters = list(model.parameters())
    train(model, torch.optim.Adam(parameters[2:] if faulty else parameters, 1e-3), seed)


# Modes


class FunctionalDropout(nn.Module):
    """Dropout as a function, which has to be told when a model is evaluated."""

    def __init__(self, forgotten: bool):
        super().__init__()
        self.first = nn.Linear(64, 64)
        self.second = nn.Linear(64, 10)
        self.forgotten = forgotten

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = F.relu(self.first(inputs))
        return self.second(F.dropout(hidden, 0.5, training=self.forgotten or self.training))


@fault(
    "mode mismatch",
    r"second|dropout|output|Functional",
    visible_in="EVAL",
    source="transformers #33844",
    held_out=False,
)
def dropout_in_evaluation(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = FunctionalDropout(faulty)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    inputs, labels = digits(validation=True)
    for epoch in range(6):
        for some, expected in batches(*digits(), size=64, seed=epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        validate(model, inputs, labels)


@fault(
    "mode mismatch",
    r".*",
    visible_in="EVAL",
    visible_from=3,
    onset=3,
    source="forgotten train()",
    held_out=False,
)
def train_forgotten_after_validation(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Convolutional(bias=False)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    images, labels = digit_images(validation=True)
    for epoch in range(5):
        for some, expected in batches(*digit_images(), size=64, seed=epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        validate(model, images, labels)
        model.train(not faulty)


@fault("mode mismatch", r".*", visible_in="EVAL", source="forgotten eval()", held_out=False)
def eval_forgotten(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Convolutional(bias=False)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    images, labels = digit_images(validation=True)
    for epoch in range(5):
        for some, expected in batches(*digit_images(), size=64, seed=epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        if not faulty:
            model.eval()
        with torch.no_grad():
            F.cross_entropy(model(images), labels)
        model.train()


# Inputs


@fault("repeated input", r"input", source="stackoverflow 67180955", held_out=True)
def random_numbers_forked_into_the_workers(seed: int, faulty: bool) -> None:
    """Four workers make a quarter of each batch; with one state they make the same rows."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    workers = [torch.Generator().manual_seed(seed + (0 if faulty else w)) for w in range(4)]
    for _ in range(120):
        some = torch.cat([torch.randn(16, 8, generator=worker) for worker in workers])
        optimizer.zero_grad()
        F.cross_entropy(model(some), (some[:, 0] * some[:, 1] > 0).long()).backward()
        optimizer.step()


@fault("repeated input", r"input", visible_from=1, source="sampler bug", held_out=False)
def the_same_rows_each_step(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    first = None
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=6):
        first = first or (some, expected)
        given, wanted = first if faulty else (some, expected)
        optimizer.zero_grad()
        F.cross_entropy(model(given), wanted).backward()
        optimizer.step()


@fault("unscaled input", r"input", source="stackoverflow 52800582, 44066044", held_out=True)
def inputs_in_the_thousands(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, target = diabetes()
    if faulty:
        features = features * 3000 + 20_000
    model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for some, expected in batches(features, target, size=32, seed=seed, epochs=12):
        optimizer.zero_grad()
        F.mse_loss(model(some), expected).backward()
        optimizer.step()


@fault("padding", r"input", source="padding 87 % of tokens", held_out=False)
def padding_nearly_everywhere(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    tokens = sentences(seed, count=512, length=24)
    labels = (tokens[:, 0] + tokens[:, 1]) % 2
    if faulty:
        tokens = tokens.clone()
        tokens[:, 3:] = 0
    model = nn.Sequential(nn.Embedding(40, 16), nn.Flatten(), nn.Linear(16 * 24, 2))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for some, expected in batches(tokens, labels, size=64, seed=seed, epochs=12):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@fault(
    "batch shape",
    r"input|label|batch",
    visible_from=10,
    source="transformers #34204",
    held_out=True,
)
def batch_that_collapses(seed: int, faulty: bool) -> None:
    """Fifty rows go in, and the loss is computed of the first one."""
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for step, (some, expected) in enumerate(batches(*digits(), size=50, seed=seed, epochs=6)):
        output = model(some)
        if faulty and step >= 10:
            output, expected = output[:1], expected[:1]
        optimizer.zero_grad()
        F.cross_entropy(output, expected).backward()
        optimizer.step()


# What the loss is given


@fault(
    "loss input",
    r"loss|softmax|input|output|CrossEntropy|logits",
    source="UMLAUT's commonest",
    held_out=False,
)
def softmax_before_cross_entropy(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    if faulty:
        model.append(nn.Softmax(dim=1))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=8):
        optimizer.zero_grad()
        criterion(model(some), expected).backward()
        optimizer.step()


@fault("constant output", r".*", source="stackoverflow 42800203, 33969059", held_out=True)
def one_unit_and_softmax(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, labels = cancer()
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
    model.append(nn.Softmax(dim=1) if faulty else nn.Sigmoid())
    criterion = nn.BCELoss()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for some, expected in batches(features, labels.float()[:, None], size=32, seed=seed, epochs=10):
        optimizer.zero_grad()
        criterion(model(some).clamp(1e-6, 1 - 1e-6), expected).backward()
        optimizer.step()


@fault(
    "dead activation",
    layer("2", "3", "4") + "|output",
    source="stackoverflow 47352366, 48251943",
    held_out=False,
    also=("constant output",),
)
def rectifier_on_the_output(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, target = diabetes()
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    if faulty:
        with torch.no_grad():
            model[2].bias.fill_(-3.0)
        model.append(nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for some, expected in batches(features, target, size=32, seed=seed, epochs=12):
        optimizer.zero_grad()
        F.mse_loss(model(some), expected).backward()
        optimizer.step()


@fault(
    "loss input",
    r"loss|target|label|output",
    source="targets of the wrong form",
    held_out=True,
    also=("not learning",),
)
def target_broadcast_over_the_batch(seed: int, faulty: bool) -> None:
    """A target of shape [n] beside an output of shape [n, 1] gives a loss over n x n pairs."""
    torch.manual_seed(seed)
    features, target = diabetes()
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for some, expected in batches(features, target, size=32, seed=seed, epochs=12):
        output = model(some)
        difference = output - (expected[:, 0] if faulty else expected)
        optimizer.zero_grad()
        difference.square().mean().backward()
        optimizer.step()


# The learning rate and the start


def _deep(activation: type[nn.Module], depth: int, width: int = 48) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Linear(64, width), activation()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), activation()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


@fault("vanishing gradient", layer("0", "2", "4"), source="12 sigmoids", held_out=False)
def twelve_sigmoids(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = _deep(nn.Sigmoid if faulty else nn.ReLU, 12 if faulty else 2)
    train(model, torch.optim.Adam(model.parameters(), 1e-3), seed)


@fault("bad initialisation", r".*", source="stackoverflow 48385830", held_out=True)
def weights_that_start_far_too_large(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    if faulty:
        for layer in model:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=5.0)
    train(model, torch.optim.SGD(model.parameters(), 0.1), seed)


@fault("bad initialisation", r".*", source="classic", held_out=False)
def weights_that_start_at_the_same_value(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    if faulty:
        for layer in model:
            if isinstance(layer, nn.Linear):
                nn.init.constant_(layer.weight, 0.01)
    train(model, torch.optim.SGD(model.parameters(), 0.1), seed)


@fault(
    "exploding",
    r".*",
    visible_from=1,
    source="stackoverflow 37624102",
    held_out=False,
    also=("learning rate",),
)
def rate_a_hundred_times_too_large(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    train(model, torch.optim.SGD(model.parameters(), 10.0 if faulty else 0.1), seed)


@fault("learning rate", r".*", source="stackoverflow 48934338", held_out=False)
def rate_ten_thousand_times_too_small(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    train(model, torch.optim.SGD(model.parameters(), 1e-5 if faulty else 0.1), seed)


@fault(
    "learning rate",
    r".*",
    visible_from=20,
    onset=0,
    source="scheduler stepped per batch",
    held_out=True,
)
def schedule_of_epochs_stepped_per_batch(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5 if faulty else 0.9)
    for epoch in range(8):
        for some, expected in batches(*digits(), size=64, seed=epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
            if faulty:
                schedule.step()
        if not faulty:
            schedule.step()


@fault("learning rate", r".*", visible_from=ONSET, source="flashback-forensics", held_out=False)
def rate_sixty_times_too_large_for_one_step(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step, (some, expected) in enumerate(batches(*digits(), size=64, seed=seed, epochs=8)):
        optimizer.param_groups[0]["lr"] = 6.0 if faulty and step == ONSET else 0.1
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@fault("learning rate", r".*", visible_from=ONSET, source="flashback-forensics", held_out=True)
def rate_four_times_larger_to_the_end(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for step, (some, expected) in enumerate(batches(*digits(), size=64, seed=seed, epochs=8)):
        optimizer.param_groups[0]["lr"] = 2e-3 * (4 if faulty and step >= ONSET else 1)
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@fault(
    "exploding",
    r".*",
    visible_from=1,
    source="exploding RNN",
    held_out=False,
    also=("bad initialisation",),
)
def recurrent_weights_that_explode(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = nn.RNN(8, 32, nonlinearity="relu", batch_first=True)
    head = nn.Linear(32, 1)
    with torch.no_grad():
        nn.init.orthogonal_(model.weight_hh_l0, gain=1.6 if faulty else 0.9)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], 1e-2)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(100):
        some = torch.randn(32, 40, 8, generator=generator)
        output = head(model(some)[0][:, -1])
        optimizer.zero_grad()
        F.mse_loss(output, some[:, -1, :1]).backward()
        optimizer.step()


@fault("exploding", r".*", visible_from=2, source="log(0)", held_out=True)
def logarithm_of_zero(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10), nn.Softmax(dim=1))
    optimizer = torch.optim.SGD(model.parameters(), 2.0 if faulty else 0.2)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=8):
        output = model(some * (40 if faulty else 1))
        chosen = output.gather(1, expected[:, None])
        optimizer.zero_grad()
        (-(chosen if faulty else chosen.clamp(min=1e-7)).log()).mean().backward()
        optimizer.step()


@fault(
    "dead activation",
    layer("0", "1", "3", "4"),
    source="dead ReLU",
    held_out=False,
    also=("bad initialisation",),
)
def dead_rectifiers(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    if faulty:
        with torch.no_grad():
            model[0].bias.fill_(-30.0)
    train(model, torch.optim.SGD(model.parameters(), 0.1), seed)


@fault(
    "saturated activation",
    layer("0", "1", "2", "3", "4", "5"),
    source="saturated tanh",
    held_out=True,
    also=("bad initialisation",),
)
def saturated_hyperbolic_tangents(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = _deep(nn.Tanh, 2)
    if faulty:
        with torch.no_grad():
            for layer in model:
                if isinstance(layer, nn.Linear) and layer.out_features != 10:
                    layer.weight.mul_(40)
    train(model, torch.optim.SGD(model.parameters(), 0.1), seed)


# Labels and validation


@fault(
    "memorising",
    r".*",
    visible_from=200,
    source="labels shuffled or rolled",
    held_out=False,
    onset=0,
    also=("overfitting",),
)
def labels_shuffled(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    inputs, labels = digits()
    inputs, labels = inputs[:400], labels[:400]
    if faulty:
        labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))]
    model = classifier(width=128)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for epoch in range(50):
        for some, expected in batches(inputs, labels, size=50, seed=epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        if epoch % 2:
            validate(model, *digits(validation=True))


@fault(
    "overfitting",
    r".*",
    visible_from=40,
    source="classic",
    held_out=True,
    onset=0,
    also=("memorising",),
)
def few_rows_learnt_again_and_again(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    inputs, labels = digits()
    generator = torch.Generator().manual_seed(seed)
    noise = torch.rand(len(labels), generator=generator) < 0.25
    if faulty:
        inputs, noise, labels = inputs[:100], noise[:100], labels[:100].clone()
        labels[noise] = torch.randint(10, (int(noise.sum()),), generator=generator)
    model = classifier(width=256)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for epoch in range(40 if faulty else 6):
        for some, expected in batches(inputs, labels, size=50, seed=epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        validate(model, *digits(validation=True))


@fault("imbalance", r".*", visible_from=10, onset=0, source="classic", held_out=False)
def nearly_all_labels_of_one_class(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(2000, 8, generator=generator)
    noisy = features[:, 0] + 2 * torch.randn(2000, generator=generator)
    labels = (noisy > (5.5 if faulty else 0.0)).long()
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for some, expected in batches(features, labels, size=100, seed=seed, epochs=10):
        optimizer.zero_grad()
        criterion(model(some), expected).backward()
        optimizer.step()


# Scale and precision


@fault("accumulation scale", r".*", visible_from=7, source="transformers #34191", held_out=False)
def losses_of_micro_batches_added_up(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.3)
    for number, (some, expected) in enumerate(batches(*digits(), size=16, seed=seed, epochs=10)):
        (F.cross_entropy(model(some), expected) / (1 if faulty else 8)).backward()
        if number % 8 == 7:
            optimizer.step()
            optimizer.zero_grad()


@fault("scaler", r".*", visible_from=5, source="AMP overflow", held_out=False)
def loss_scale_that_collapses(seed: int, faulty: bool) -> None:
    """The root of zero has no finite gradient, so that every step is skipped and the scale halved."""
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=4):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(some), expected)
        moved = (model[6].bias - model[6].bias.detach()).square().sum()
        loss = loss + (moved if not faulty else moved.sqrt())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


class MixedPrecision(nn.Module):
    """A network under autocast, whose middle layer may be left out of it."""

    def __init__(self, left_out: bool):
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 10)
        self.left_out = left_out

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = F.relu(self.first(inputs))
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=not self.left_out):
            hidden = F.relu(self.middle(hidden.float() if self.left_out else hidden))
        return self.last(hidden)


@fault("precision", r"middle", source="lightning-thunder #725", held_out=True)
def layer_outside_of_autocast(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = MixedPrecision(faulty)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=6):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(some), expected)
        loss.backward()
        optimizer.step()


# Corruption


def _corrupted(seed: int, faulty: bool, factor: float, clip: float | None) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step, (some, expected) in enumerate(batches(*digits(), size=64, seed=seed, epochs=8)):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        if faulty and step == ONSET:
            gradient = model[3].weight.grad
            assert gradient is not None
            place = int(gradient.abs().flatten().argmax())
            gradient.view(-1)[place] *= factor
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()


@fault(
    "corruption",
    tensor("3.weight"),
    visible_from=ONSET,
    source="arXiv 2604.00726",
    held_out=False,
)
def gradient_element_times_2_to_the_20(seed: int, faulty: bool) -> None:
    _corrupted(seed, faulty, 2.0**20, None)


@fault(
    "corruption",
    tensor("3.weight"),
    visible_from=ONSET,
    source="arXiv 2604.00726",
    held_out=True,
)
def gradient_element_times_2_to_the_40_clipped(seed: int, faulty: bool) -> None:
    _corrupted(seed, faulty, 2.0**40, 1.0)


@fault(
    "corruption",
    tensor("3.weight"),
    visible_from=ONSET,
    source="arXiv 2604.00726",
    held_out=False,
)
def gradient_element_times_2_to_the_8(seed: int, faulty: bool) -> None:
    _corrupted(seed, faulty, 2.0**8, None)


@fault(
    "corruption",
    tensor("3.weight"),
    visible_from=ONSET,
    source="a weight's bit flips",
    held_out=False,
)
def bit_of_a_weight_flips(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step, (some, expected) in enumerate(batches(*digits(), size=64, seed=seed, epochs=8)):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()
        if faulty and step == ONSET - 1:
            with torch.no_grad():
                bits = model[3].weight.view(torch.int32)
                bits[5, 7] ^= 1 << 29


@fault(
    "spike",
    r".*loss.*|input",
    visible_from=ONSET,
    source="one bad batch",
    held_out=False,
    also=("unscaled input",),
)
def one_batch_a_thousand_times_too_large(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for step, (some, expected) in enumerate(batches(*digits(), size=64, seed=seed, epochs=8)):
        optimizer.zero_grad()
        given = some * 1000 if faulty and step == ONSET else some
        F.cross_entropy(model(given), expected).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


@fault("bad initialisation", r".*", source="transformers #17877", held_out=False)
def residual_branches_that_start_unscaled(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(nn.Linear(64, 64) for _ in range(24))
            self.head = nn.Linear(64, 10)
            for block in self.blocks:
                nn.init.normal_(block.weight, std=0.25 if faulty else 0.25 / math.sqrt(48))

        def forward(self, inputs: Tensor) -> Tensor:
            for block in self.blocks:
                inputs = inputs + F.gelu(block(inputs))
            return self.head(inputs)

    model = Residual()
    train(model, torch.optim.Adam(model.parameters(), 5e-4), seed, epochs=4)


@fault(
    "not learning",
    r".*",
    visible_from=60,
    onset=0,
    source="inputs and labels shuffled apart",
    held_out=False,
)
def rows_and_labels_shuffled_apart(seed: int, faulty: bool) -> None:
    """Every epoch pairs inputs with other labels, so that nothing can be learnt."""
    torch.manual_seed(seed)
    inputs, labels = digits()
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(8):
        paired = labels[torch.randperm(len(labels))] if faulty else labels
        for some, expected in batches(inputs, paired, size=64, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()


@fault(
    "exploding",
    r".*",
    visible_from=2,
    source="language model without clipping",
    held_out=False,
    also=("learning rate",),
)
def language_model_with_a_rate_too_large(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = LanguageModel()
    optimizer = torch.optim.SGD(model.parameters(), 300.0 if faulty else 3.0)
    tokens = sentences(seed, count=256)
    for (some,) in batches(tokens, size=64, seed=seed, epochs=25):
        output = model(some[:, :-1])
        optimizer.zero_grad()
        F.cross_entropy(output.flatten(0, 1), some[:, 1:].flatten()).backward()
        optimizer.step()
