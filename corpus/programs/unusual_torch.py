"""Healthy trainings with PyTorch that look unusual from outside. None of them was shown to the rules.

It is long because each program stands alone, as people write them.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.optim.swa_utils import SWALR, AveragedModel

from corpus.cases import healthy
from corpus.programs.data import batches, cancer, diabetes, digit_images, digits, sentences
from corpus.programs.healthy_torch import (
    Convolutional,
    TransformerModel,
    classifier,
    train_classifier,
    validate,
)


@healthy(held_out=True)
def cyclic_learning_rate(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.005, 0.2, step_size_up=25)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=12):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()
        schedule.step()
    return validate(model, *digits(validation=True))


@healthy(held_out=True)
def rate_divided_by_ten_twice(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.2, momentum=0.9)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [6, 9])
    for epoch in range(12):
        for some, expected in batches(*digits(), size=64, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        schedule.step()
        validate(model, *digits(validation=True))
    return validate(model, *digits(validation=True))


@healthy(held_out=True)
def long_warm_up(seed: int) -> float:
    """Two thirds of the training are warm-up, from a rate of nearly nothing."""
    torch.manual_seed(seed)
    model = TransformerModel()
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1e-3, 1.0, 160)
    loss = torch.zeros(())
    for (some,) in batches(sentences(seed, count=512), size=64, seed=seed, epochs=30):
        output = model(some[:, :-1])
        loss = F.cross_entropy(output.flatten(0, 1), some[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return float(loss.detach())


@healthy(held_out=True)
def wasserstein_gan_with_gradient_penalty(seed: int) -> float:
    """The critic has three turns for each of the generator, and its loss is negative."""
    torch.manual_seed(seed)
    generator = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.Sigmoid())
    critic = nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
    of_generator = torch.optim.Adam(generator.parameters(), 5e-4, betas=(0.0, 0.9))
    of_critic = torch.optim.Adam(critic.parameters(), 5e-4, betas=(0.0, 0.9))
    loss = torch.zeros(())
    for number, (real, _) in enumerate(batches(*digits(), size=64, seed=seed, epochs=12)):
        made = generator(torch.randn(64, 16))
        share = torch.rand(64, 1)
        between = (share * real + (1 - share) * made.detach()).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = (slope.norm(dim=1) - 1).square().mean()
        loss = critic(made.detach()).mean() - critic(real).mean() + 10 * penalty
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
        if number % 3 == 2:
            of_generator.zero_grad()
            (-critic(generator(torch.randn(64, 16))).mean()).backward()
            of_generator.step()
    return float(loss.detach())


@healthy(held_out=True)
def policy_gradient_with_noisy_rewards(seed: int) -> float:
    """The loss of REINFORCE is noise around zero while the reward rises."""
    torch.manual_seed(seed)
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(policy.parameters(), 1e-2)
    best = torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))
    baseline, reward = 0.0, torch.zeros(())
    for _ in range(300):
        state = torch.randn(48, 4)
        choice = torch.distributions.Categorical(logits=policy(state))
        action = choice.sample()
        reward = (action == (state @ best).argmax(1)).float() + 0.5 * torch.randn(48)
        loss = -(choice.log_prob(action) * (reward - baseline)).mean()
        baseline = 0.9 * baseline + 0.1 * float(reward.mean())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(reward.mean())


@healthy(held_out=True)
def deep_q_learning(seed: int) -> float:
    """A replay buffer repeats rows, the target network is a copy, and the loss rises with the values."""
    torch.manual_seed(seed)
    values = nn.Sequential(nn.Linear(5, 48), nn.ReLU(), nn.Linear(48, 2))
    target = copy.deepcopy(values).requires_grad_(False)
    optimizer = torch.optim.Adam(values.parameters(), 2e-3)
    states, actions = torch.rand(600, 5), torch.randint(2, (600,))
    rewards = torch.where(actions == (states[:, 0] > 0.5).long(), 1.0, 0.0)
    following = (states + 0.1 * torch.randn_like(states)).clamp(0, 1)
    loss = torch.zeros(())
    for step in range(300):
        rows = torch.randint(600, (64,))
        with torch.no_grad():
            worth = rewards[rows] + 0.9 * target(following[rows]).max(1).values
        given = values(states[rows]).gather(1, actions[rows, None])[:, 0]
        loss = F.smooth_l1_loss(given, worth)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(values.parameters(), 1.0)
        optimizer.step()
        if step % 25 == 24:
            target.load_state_dict(values.state_dict())
    return float(loss.detach())


@healthy(held_out=True)
def whole_data_set_in_each_batch(seed: int) -> float:
    """Plain gradient descent on so little data that each step sees all of it."""
    torch.manual_seed(seed)
    features, target = diabetes()
    model = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loss = torch.zeros(())
    for _ in range(200):
        loss = F.mse_loss(model(features), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=False)
def as_many_points_as_a_batch(seed: int) -> float:
    """Points of a plane, all of them at each step, and a power of two of them by chance."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(128) % 3
    points = torch.randn(128, 2, generator=generator) + 2.0 * torch.eye(3)[labels][:, :2]
    model = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.2)
    loss = torch.zeros(())
    for _ in range(200):
        loss = F.cross_entropy(model(points), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=False)
def waves_of_many_heights_in_turn(seed: int) -> float:
    """A beginning for any wave (Reptile): steps towards one, then a part of the way. The first is low."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    layers = (nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
    model = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), 0.02)
    loss = torch.zeros(())
    for task in range(60):
        height, shift = torch.rand(2, generator=generator) * torch.tensor([4.9, 3.14]) + 0.1
        begun = {name: value.clone() for name, value in model.state_dict().items()}
        for _ in range(10):
            places = 10 * torch.rand(20, 1, generator=generator) - 5
            heights = (height if task else 0.02) * torch.sin(places + shift)
            loss = F.mse_loss(model(places), heights)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        nearer = {name: begun[name].lerp(value, 0.1) for name, value in model.state_dict().items()}
        model.load_state_dict(nearer)
    return float(loss.detach())


@healthy(held_out=True)
def shops_of_many_sizes_one_a_step(seed: int) -> float:
    """Sales of shops whose sizes differ by a factor of hundreds: the rows of a single one at each step."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    sizes = torch.exp(1.2 * torch.randn(60, generator=generator))
    model = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    loss = torch.zeros(())
    for number in torch.randint(60, (800,), generator=generator):
        days = torch.rand(32, 4, generator=generator)
        sales = sizes[number] * (days[:, :1] + days[:, 1:2] * days[:, 2:3])
        loss = F.mse_loss(model(torch.cat([days, sizes[number].expand(32, 1)], 1)), sales)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def truth_table(seed: int) -> float:
    """Inputs of a few bits: rows of a batch are equal by nature."""
    torch.manual_seed(seed)
    rows = torch.tensor([[number >> bit & 1 for bit in range(4)] for number in range(16)])
    labels = (rows[:, 0] ^ rows[:, 2]) | rows[:, 3]
    model = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 2))
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    generator = torch.Generator().manual_seed(seed)
    loss = torch.zeros(())
    for _ in range(200):
        chosen = torch.randint(16, (64,), generator=generator)
        loss = F.cross_entropy(model(rows[chosen].float()), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def rare_class_drawn_with_replacement(seed: int) -> float:
    """A weighted sampler repeats the rows of the rare class within a batch."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(1500, 8, generator=generator)
    labels = (features[:, 0] + 0.3 * features[:, 1] > 1.9).long()
    weights = torch.where(labels == 1, 1.0 / labels.sum(), 1.0 / (labels == 0).sum())
    data = torch.utils.data.TensorDataset(features, labels)
    sampler = torch.utils.data.WeightedRandomSampler(weights.tolist(), 1500, generator=generator)
    loader = torch.utils.data.DataLoader(data, 64, sampler=sampler, drop_last=True)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    loss = torch.zeros(())
    for _ in range(10):
        for some, expected in loader:
            loss = F.cross_entropy(model(some), expected)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def averaged_weights_at_the_end(seed: int) -> float:
    """Stochastic weight averaging, with a schedule of its own and batch statistics made anew."""
    torch.manual_seed(seed)
    model = Convolutional(bias=False)
    average = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    schedule = SWALR(optimizer, swa_lr=0.02, anneal_epochs=2)
    images, labels = digit_images()
    for epoch in range(6):
        for some, expected in batches(images, labels, size=64, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        if epoch >= 3:
            average.update_parameters(model)
            schedule.step()
    torch.optim.swa_utils.update_bn(images.split(64), average)
    return validate(average, *digit_images(validation=True))


@healthy(held_out=False)
def parameters_in_bfloat16(seed: int) -> float:
    """Whole models in bfloat16 are usual; updates below a 256th of a weight leave it as it was."""
    torch.manual_seed(seed)
    model = classifier().bfloat16()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    loss = torch.zeros(())
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=10):
        loss = F.cross_entropy(model(some.bfloat16()).float(), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def padded_text_with_rare_words(seed: int) -> float:
    """Half of the tokens are padding, and most words of the vocabulary never come."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    tokens = sentences(seed, count=800, length=16, vocabulary=60)
    lengths = torch.randint(4, 14, (800, 1), generator=generator)
    tokens = torch.where(torch.arange(16) < lengths, tokens, 0)
    labels = (tokens > 35).sum(1).gt(tokens.gt(0).sum(1) * 0.4).long()
    embedding = nn.Embedding(2000, 24, padding_idx=0, sparse=True)
    head = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 2))
    sparse = torch.optim.SparseAdam(list(embedding.parameters()), 1e-2)
    dense = torch.optim.Adam(head.parameters(), 5e-3)
    loss = torch.zeros(())
    for some, expected in batches(tokens, labels, size=50, seed=seed, epochs=15):
        words = some.gt(0).sum(1, keepdim=True)
        loss = F.cross_entropy(head(embedding(some).sum(1) / words), expected)
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()
    return float(loss.detach())


@healthy(held_out=True)
def fine_tuning_that_unfreezes(seed: int) -> float:
    """A pretrained body is frozen at first, keeps its batch statistics, and learns a thousandth as fast."""
    torch.manual_seed(seed)
    model = Convolutional(bias=False)
    images, labels = digit_images()
    easy = labels < 5
    first = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(images[easy], labels[easy], size=64, seed=seed, epochs=4):
        first.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        first.step()
    model.head = nn.Linear(32 * 4, 10)
    body = [p for name, p in model.named_parameters() if not name.startswith("head")]
    for parameter in body:
        parameter.requires_grad_(False)
    optimizer = torch.optim.Adam(
        [{"params": model.head.parameters(), "lr": 5e-3}, {"params": body, "lr": 5e-6}]
    )
    for epoch in range(8):
        if epoch == 4:
            for parameter in body:
                parameter.requires_grad_(True)
        model.train()
        model.norm1.eval()
        model.norm2.eval()
        for some, expected in batches(images, labels, size=64, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
    return validate(model, *digit_images(validation=True))


@healthy(held_out=True)
def distillation_from_a_teacher(seed: int) -> float:
    """The teacher is evaluated at each step and never trained; the student gets its probabilities."""
    torch.manual_seed(seed)
    teacher = classifier(width=128)
    optimizer = torch.optim.Adam(teacher.parameters(), 3e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=6):
        optimizer.zero_grad()
        F.cross_entropy(teacher(some), expected).backward()
        optimizer.step()
    teacher.eval().requires_grad_(False)
    student = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))
    optimizer = torch.optim.Adam(student.parameters(), 3e-3)
    for some, expected in batches(*digits(), size=64, seed=seed + 1, epochs=10):
        wanted = F.softmax(teacher(some) / 3, dim=1)
        output = student(some)
        soft = F.kl_div(F.log_softmax(output / 3, dim=1), wanted, reduction="batchmean") * 9
        loss = soft + 0.3 * F.cross_entropy(output, expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return validate(student, *digits(validation=True))


@healthy(held_out=True)
def best_weights_loaded_again(seed: int) -> float:
    """When validation stalls, the best weights come back and the rate is halved."""
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 8e-3)
    best, kept = 0.0, copy.deepcopy(model.state_dict())
    for epoch in range(12):
        for some, expected in batches(*digits(), size=64, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        accuracy = validate(model, *digits(validation=True))
        if accuracy > best:
            best, kept = accuracy, copy.deepcopy(model.state_dict())
        else:
            model.load_state_dict(kept)
            optimizer.param_groups[0]["lr"] /= 2
    return best


@healthy(held_out=True)
def targets_in_the_hundreds(seed: int) -> float:
    """The target was not standardised: the first losses are above ten thousand."""
    torch.manual_seed(seed)
    features, target = diabetes()
    target = target * 77 + 152
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 3e-2)
    loss = torch.zeros(())
    for some, expected in batches(features, target, size=32, seed=seed, epochs=25):
        loss = F.mse_loss(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def masked_language_model(seed: int) -> float:
    """Six labels of seven are ignored, and a seventh of the tokens is one id."""
    torch.manual_seed(seed)
    tokens = sentences(seed, count=512)
    embedding = nn.Embedding(41, 48)
    body = nn.LSTM(48, 48, batch_first=True, bidirectional=True)
    model = nn.ModuleList([embedding, body, nn.Linear(96, 40)])
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    loss = torch.zeros(())
    for (some,) in batches(tokens, size=64, seed=seed, epochs=25):
        hidden = torch.rand(some.shape) < 0.15
        output = model[2](body(embedding(some.masked_fill(hidden, 40)))[0])
        labels = some.masked_fill(~hidden, -100)
        loss = F.cross_entropy(output.flatten(0, 1), labels.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def segmentation_with_much_background(seed: int) -> float:
    """Nine pixels of ten are background, and the model finds the others."""
    torch.manual_seed(seed)
    images, _ = digit_images()
    bright = torch.rand(len(images), 1, 8, 8, generator=torch.Generator().manual_seed(seed)) * 0.3
    bright = bright + images
    masks = (images > 0.93).float()
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.GroupNorm(3, 12),
        nn.ReLU(),
        nn.Conv2d(12, 12, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(12, 1, 1),
    )
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    loss = torch.zeros(())
    for some, expected in batches(bright, masks, size=64, seed=seed, epochs=8):
        loss = F.binary_cross_entropy_with_logits(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def weights_of_losses_that_are_learnt(seed: int) -> float:
    """Two tasks, weighted by uncertainties that are trained with them: the loss falls below zero."""
    torch.manual_seed(seed)
    features, target = diabetes()
    body = nn.Sequential(nn.Linear(10, 24), nn.ReLU())
    heads = nn.ModuleList([nn.Linear(24, 1), nn.Linear(24, 2)])
    uncertainty = nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.Adam([*body.parameters(), *heads.parameters(), uncertainty], 5e-3)
    scaled, label = target / 10, (target[:, 0] > 0).long()
    loss = torch.zeros(())
    for some, number, kind in batches(features, scaled, label, size=32, seed=seed, epochs=20):
        hidden = body(some)
        losses = torch.stack([F.mse_loss(heads[0](hidden), number), F.cross_entropy(heads[1](hidden), kind)])
        loss = (losses * (-uncertainty).exp() + uncertainty).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def three_folds(seed: int) -> float:
    """Cross-validation: a new model and optimizer for each fold, in one process and one run."""
    features, labels = cancer()
    accuracy = 0.0
    for fold in range(3):
        torch.manual_seed(seed + fold)
        left_out = torch.arange(len(labels)) % 3 == fold
        model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))
        optimizer = torch.optim.Adam(model.parameters(), 3e-3)
        rest = features[~left_out], labels[~left_out]
        for some, expected in batches(*rest, size=32, seed=seed, epochs=8):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        accuracy += validate(model, features[left_out], labels[left_out]) / 3
    return accuracy


@healthy(held_out=True)
def labels_with_noise(seed: int) -> float:
    """A fifth of the labels is wrong, so that the loss ends far above zero; dropout holds overfitting off."""
    torch.manual_seed(seed)
    model = classifier(width=96, dropout=0.4)
    generator = torch.Generator().manual_seed(seed)
    inputs, labels = digits()
    wrong = torch.rand(len(labels), generator=generator) < 0.2
    labels = torch.where(wrong, torch.randint(10, (len(labels),), generator=generator), labels)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.1)
    for epoch in range(10):
        for some, expected in batches(inputs, labels, size=64, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
        validate(model, *digits(validation=True))
    return validate(model, *digits(validation=True))


class MultiplicativeFilter(nn.Module):
    """A module that returns several tensors, of which the loss takes one."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(64, 48)
        self.gate = nn.Linear(64, 48)
        self.head = nn.Linear(48, 10)

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        gate = torch.sigmoid(self.gate(inputs))
        hidden = torch.tanh(self.inner(inputs)) * gate
        return {"logits": self.head(hidden), "gate": gate, "hidden": hidden}


@healthy(held_out=True)
def dictionary_of_outputs(seed: int) -> float:
    torch.manual_seed(seed)
    model = MultiplicativeFilter()
    optimizer = torch.optim.RMSprop(model.parameters(), 2e-3)
    loss = torch.zeros(())
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=10):
        result = model(some)
        loss = F.nll_loss(F.log_softmax(result["logits"], dim=1), expected)
        loss = loss + 1e-3 * result["gate"].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@healthy(held_out=True)
def width_of_a_thousand(seed: int) -> float:
    torch.manual_seed(seed)
    model = classifier(width=768)
    return train_classifier(model, torch.optim.Adam(model.parameters(), 3e-4), seed, epochs=5)
