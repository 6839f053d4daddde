"""Latent distributions and embeddings are read off the graph of a loss, however it is written."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from smdebug.pytorch.observing.codes import code_facts

CAN_READ = hasattr(torch.ones(1, requires_grad=True).exp().grad_fn._raw_saved_result, "unpack_hook")
pytestmark = pytest.mark.skipif(not CAN_READ, reason="before PyTorch 2.7 nothing is read")
torch.manual_seed(0)
MEAN = torch.randn(16, 3, requires_grad=True)
LOGVAR = (0.3 * torch.randn(16, 3)).requires_grad_()
GIVEN = torch.randn(16, 7)


def by_hand():
    return -0.5 * torch.sum(1 + LOGVAR - MEAN.pow(2) - LOGVAR.exp(), dim=1).mean()


def by_products():
    return 0.5 * (MEAN**2 + torch.exp(LOGVAR) - LOGVAR - 1).sum() / len(MEAN)


def by_deviations():
    deviation = (0.5 * LOGVAR).exp()
    return 0.5 * (MEAN**2 + deviation**2 - 1 - torch.log(deviation**2)).sum(1).mean()


def by_distributions():
    given = torch.distributions.Normal(MEAN, (0.5 * LOGVAR).exp())
    prior = torch.distributions.Normal(torch.zeros(16, 3), torch.ones(16, 3))
    return torch.distributions.kl_divergence(given, prior).sum(1).mean()


def decoded():
    drawn = MEAN + (0.5 * LOGVAR).exp() * torch.randn(16, 3)
    return nn.Linear(3, 7)(drawn)


@pytest.mark.parametrize("divergence", [by_hand, by_products, by_deviations, by_distributions])
@pytest.mark.parametrize(
    "error", [lambda: F.mse_loss(decoded(), GIVEN), lambda: ((decoded() - GIVEN) ** 2).sum(1).mean()]
)
def test_the_divergence_of_a_latent_code_is_found_beside_an_error(divergence, error):
    latent = code_facts(error() + 0.3 * divergence(), True)()["latent"]
    assert latent["divergence"] == pytest.approx(float(divergence()), rel=1e-4)
    assert latent["dimensions"] == 3


def test_an_error_alone_has_no_latent_code():
    assert code_facts(((decoded() - GIVEN) ** 2).mean() + MEAN.pow(2).mean(), False) is None
    assert code_facts(F.mse_loss(decoded(), GIVEN), True) is None


@pytest.mark.parametrize(
    "similarity",
    [
        lambda left, right: (F.normalize(left, dim=1) * F.normalize(right, dim=1)).sum(1).mean(),
        lambda left, right: F.cosine_similarity(left, right, dim=1).mean(),
    ],
)
def test_embeddings_that_a_loss_compares_are_found(similarity):
    left, right = (torch.randn(16, 8, requires_grad=True) for _ in range(2))
    spread = code_facts(-similarity(left, right), False)()["embedding"]
    assert (spread["rows"], spread["columns"]) == (16, 8)
    assert abs(spread["alignment"]) < 0.2
    alike = (torch.ones(16, 8) + 1e-3 * torch.randn(16, 8)).requires_grad_()
    assert code_facts(2 - 2 * similarity(alike, alike + 0), False)()["embedding"]["alignment"] > 0.999
    assert code_facts(2 - 2 * similarity(alike, alike + 0), True) is None


LOGITS = torch.randn(32, 4, requires_grad=True)
CHOSEN = torch.randint(0, 4, (32,))
ADVANTAGES = torch.randn(32)


def distribution():
    return torch.distributions.Categorical(logits=LOGITS)


def by_distribution():
    return -(distribution().log_prob(CHOSEN) * ADVANTAGES).mean()


def by_gathering():
    return -(ADVANTAGES * F.log_softmax(LOGITS, 1).gather(1, CHOSEN[:, None]).squeeze(1)).sum() / 32


def by_indexing():
    return (-F.log_softmax(LOGITS, 1)[torch.arange(32), CHOSEN] * ADVANTAGES).mean()


def by_clipped_ratios():
    ratio = (distribution().log_prob(CHOSEN) - torch.randn(32)).exp()
    return -torch.min(ratio * ADVANTAGES, ratio.clamp(0.8, 1.2) * ADVANTAGES).mean()


def by_losses_of_ratios():
    ratio = (distribution().log_prob(CHOSEN) - torch.randn(32)).exp()
    return torch.max(-ADVANTAGES * ratio, -ADVANTAGES * ratio.clamp(0.8, 1.2)).mean()


def summed():
    return -(F.softmax(LOGITS, 1) * F.log_softmax(LOGITS, 1)).sum(1).mean()


@pytest.mark.parametrize("entropy", [lambda: distribution().entropy().mean(), summed])
@pytest.mark.parametrize(
    "policy", [by_distribution, by_gathering, by_indexing, by_clipped_ratios, by_losses_of_ratios]
)
def test_a_policy_is_described_with_its_entropy_and_advantages(policy, entropy):
    value = F.mse_loss(LOGITS.sum(1), ADVANTAGES)
    for bonus, loss in (
        (1.0, policy() - 0.01 * entropy()),
        (1.0, policy() + 0.5 * value - entropy() / 100),
        (1.0, policy() + 0.01 * -entropy()),
        (-1.0, policy() + 0.01 * entropy()),
        (-1.0, policy() + 0.5 * value + 0.01 * entropy()),
        (-1.0, policy() - -0.01 * entropy()),
    ):
        facts = code_facts(loss, True)()["policy"]
        assert facts["bonus"] == bonus
        assert facts["choices"] == 4
        assert facts["entropy"] == pytest.approx(float(entropy()), rel=1e-4)
        assert sorted(map(abs, (facts["lowest"], facts["highest"]))) == pytest.approx(
            sorted(map(abs, (float(ADVANTAGES.min()), float(ADVANTAGES.max()))))
        )


@pytest.mark.parametrize(
    "loss",
    [
        lambda: by_distribution(),  # without an entropy
        lambda: by_distribution() - 0.0 * summed(),
        lambda: by_distribution() - torch.zeros(()) * summed(),
        lambda: summed(),  # which is all there is
        lambda: F.cross_entropy(LOGITS, CHOSEN) - 0.01 * summed(),
        lambda: by_distribution() - 0.01 * (F.softmax(LOGITS, 1) * LOGITS.sin()).sum(1).mean(),
    ],
)
def test_another_loss_is_not_that_of_a_policy(loss):
    facts = code_facts(loss(), True)
    assert facts is None or "policy" not in facts()


SOFT = F.softmax(torch.randn(32, 4), 1)
ONE_HOT = F.one_hot(CHOSEN, 4).float()


def against(targets):
    return -(targets * F.log_softmax(LOGITS / 0.1, 1)).sum(-1).mean()


@pytest.mark.parametrize(
    ("loss", "is_soft"),
    [
        (lambda: against(SOFT), True),
        (lambda: (against(SOFT) + against(SOFT.flip(0))) / 2, True),
        (lambda: F.cross_entropy(LOGITS, SOFT), True),
        (lambda: against(ONE_HOT), False),
        (lambda: against(0.9 * ONE_HOT + 0.025), False),
        (lambda: against(0.7 * ONE_HOT + 0.3 * ONE_HOT.flip(0)), False),
        (lambda: against(SOFT) + F.cross_entropy(LOGITS, CHOSEN), False),
        (lambda: against(SOFT) - 0.01 * summed(), False),
        (lambda: by_distribution() + 0.1 * against(SOFT), False),
        (lambda: against(2 * SOFT), False),
    ],
)
def test_probabilities_of_another_model_are_known_where_they_are_the_only_targets(loss, is_soft):
    facts = code_facts(loss(), True)
    assert ("soft_targets" in ({} if facts is None else facts())) is is_soft


def acting(turn, *, ratio=False, advantage=None):
    """The loss of a policy with continuous actions, of which the entropy counts so much."""
    policy = torch.distributions.Normal(MEAN, LOGVAR.exp())
    chosen = torch.randn(16, 3)
    logarithms = policy.log_prob(chosen).sum(1)
    advantage = torch.linspace(-1, 1, 16) if advantage is None else advantage
    gained = ((logarithms - logarithms.detach()).exp() if ratio else logarithms) * advantage
    value = F.mse_loss(MEAN.sum(1), GIVEN[:, 0])
    return -gained.mean() + 0.5 * value + turn * policy.entropy().sum(1).mean()


@pytest.mark.parametrize("ratio", [False, True])
@pytest.mark.parametrize(("turn", "bonus"), [(-0.01, 1.0), (0.01, -1.0)])
def test_the_spread_of_actions_is_found_with_the_sign_of_its_entropy(turn, bonus, ratio):
    actions = code_facts(acting(turn, ratio=ratio), True)()["actions"]
    assert actions["bonus"] == bonus
    assert actions["log_scale"] == pytest.approx(float(LOGVAR.mean()), rel=1e-4)
    assert (actions["lowest"], actions["highest"]) == (-1, 1)


@pytest.mark.parametrize(
    "loss",
    [
        lambda: acting(0.0),
        lambda: -torch.distributions.Normal(MEAN, LOGVAR.exp()).log_prob(GIVEN[:, :3]).mean(),
        lambda: F.gaussian_nll_loss(MEAN, GIVEN[:, :3], LOGVAR.exp()),
    ],
    ids=["no entropy", "likelihood", "criterion"],
)
def test_a_loss_without_advantages_or_entropy_has_no_spread_of_actions(loss):
    facts = code_facts(loss(), True)
    assert facts is None or "actions" not in facts()
