from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.searchers.small import objective
from theta0.errors import Theta0Error
from theta0.objective import Objective, Outcome
from theta0.searchers import Budget, Task
from theta0.searchers.reinforce import Policy, _episode
from theta0.searching import run
from theta0.space import Choice, Chosen, Space, get_space

CHOICES = (Choice("a", (0, 1, 2)), Choice("b", (0, 1)), Choice("c", (0, 1, 2, 3)))


class Toy(Space[Chosen]):
    name, title = "toy", "24 architectures"
    choices = CHOICES

    def network(self, architecture: Chosen, skeleton: object) -> nn.Module:
        raise AssertionError("nothing is built")


class Worth(Objective[Any]):
    """A function of the codes, over those that are allowed; fails by the number of evaluations so far."""

    def __init__(
        self,
        worth: Callable[[tuple[int, ...]], float],
        allowed: Callable[[tuple[int, ...]], bool] = lambda codes: True,
        space: Space[Any] | None = None,
        fails: range = range(0),
    ) -> None:
        self.space, self.epochs, self.worth, self.fits, self.fails = space or Toy(), (1, 2), worth, allowed, fails
        self.count = 0

    def evaluate(self, architecture: Any, epochs: int, seconds: float = math.inf) -> Outcome:
        self.count += 1
        failed = self.count - 1 in self.fails
        return Outcome(math.nan if failed else self.worth(self.space.encode(architecture)), 1.0)

    def allowed(self, architecture: Any) -> bool:
        return self.fits(self.space.encode(architecture))


def test_a_policy_begins_uniform() -> None:
    probabilities = Policy(CHOICES, 0.1).probabilities
    np.testing.assert_allclose(probabilities[0], [1 / 3, 1 / 3, 1 / 3, 0])
    np.testing.assert_allclose(probabilities[1], [1 / 2, 1 / 2, 0, 0])
    np.testing.assert_allclose(probabilities[2], [1 / 4] * 4)


def test_steps_are_those_of_autograd() -> None:
    """Against Categorical distributions, their log_prob and the same Adam, choice by choice."""
    policy = Policy(CHOICES, 0.05)
    logits = [torch.zeros(len(choice.candidates), dtype=torch.float64, requires_grad=True) for choice in CHOICES]
    adam = torch.optim.Adam(logits, lr=0.05)
    generator = np.random.default_rng(0)
    for _ in range(20):
        draws = [policy.draw(generator) for _ in range(int(generator.integers(1, 4)))]
        advantage = float(generator.standard_normal())
        policy.step(draws, advantage)
        adam.zero_grad()
        loss = torch.zeros((), dtype=torch.float64)
        for codes in draws:
            for one, code in zip(logits, codes, strict=True):
                loss = loss - advantage * torch.distributions.Categorical(logits=one).log_prob(torch.tensor(code))
        loss.backward()
        adam.step()
        for row, one in zip(policy.probabilities, logits, strict=True):
            np.testing.assert_allclose(row[: len(one)], one.detach().softmax(0).numpy(), rtol=1e-10)
            assert not row[len(one) :].any()


def test_draws_follow_the_probabilities() -> None:
    policy, generator = Policy(CHOICES, 0.3), np.random.default_rng(0)
    for _ in range(3):
        policy.step([[2, 0, 1]], 1.0)
    draws = np.array([policy.draw(generator) for _ in range(4000)])
    for place, row in enumerate(policy.probabilities):
        np.testing.assert_allclose(np.bincount(draws[:, place], minlength=4) / 4000, row, atol=0.03)


def test_refused_draws_make_the_gradient_that_of_the_reward_given_what_is_allowed() -> None:
    def fits(codes: tuple[int, ...]) -> bool:
        return codes[0] != codes[2] and codes[:2] != (2, 1)

    def worth(codes: tuple[int, ...]) -> float:
        return 1.0 * codes[0] + 2.0 * (codes[1] == 1) - 0.5 * codes[2]

    policy, generator = Policy(CHOICES, 0.3), np.random.default_rng(0)
    for codes in ([0, 1, 1], [0, 1, 3], [1, 1, 1]):
        policy.step([codes], 1.0)
    every = list(itertools.product(*(range(len(choice.candidates)) for choice in CHOICES)))
    kept = [codes for codes in every if fits(codes)]
    chance = np.array([np.prod([policy.probabilities[i, code] for i, code in enumerate(codes)]) for codes in kept])
    assert 0.2 < chance.sum() < 0.8
    chance /= chance.sum()
    values = np.array([worth(codes) for codes in kept])
    scores = np.array([policy.score([codes]) for codes in kept])
    # The gradient of sum p(a) R(a) / sum p(a).
    exact = np.einsum("n,n,nij->ij", chance, values - chance @ values, scores)
    task = Task(Worth(worth, fits), Budget(1))
    episodes = [_episode(policy, task, generator) for _ in range(6000)]
    rewards = np.array([worth(tuple(draws[-1])) for _, draws in episodes])
    estimate, short = (
        np.mean([(reward - 2) * policy.score(draws) for reward, draws in zip(rewards, taken, strict=True)], axis=0)
        for taken in ([draws for _, draws in episodes], [draws[-1:] for _, draws in episodes])
    )
    np.testing.assert_allclose(estimate, exact, atol=0.06)
    assert np.abs(short - exact).max() > 0.12  # the last draw alone is another gradient
    assert all(fits(tuple(draws[-1])) and not any(fits(tuple(one)) for one in draws[:-1]) for _, draws in episodes)


def test_it_learns() -> None:
    def worth(codes: tuple[int, ...]) -> float:
        return float(codes[0] + 3 * codes[1] + codes[2])

    trials = run("reinforce", Worth(worth), Budget(400), learning_rate=0.05).trials
    values = [one.value for one in trials]
    assert np.mean(values[:20]) < 5.5  # 4 by chance
    assert np.mean(values[-50:]) > 7  # of 8 at most


def test_by_default_it_learns_slowly() -> None:
    trials = run("reinforce", Worth(lambda codes: float(codes[1])), Budget(100)).trials
    assert 0.3 < np.mean([one.value for one in trials]) < 0.75


def test_failures_teach_nothing() -> None:
    """After nine failures the rest goes as if they had not been, since each draws three numbers."""
    seen: list[list[Any]] = []
    for fails in (range(0), range(9)):
        search = Worth(lambda codes: float(codes[1]), fails=fails)
        seen.append([one.architecture for one in run("reinforce", search, Budget(60), learning_rate=0.5).trials])
    policy, generator = Policy(CHOICES, 0.5), np.random.default_rng(0)
    assert [Toy().encode(one) for one in seen[1][:10]] == [tuple(policy.draw(generator)) for _ in range(10)]
    assert seen[0] != seen[1]


def test_spaces_with_codes_that_are_no_architecture() -> None:
    space = get_space("nasbench101")
    trials = run("reinforce", Worth(lambda codes: float(sum(codes[:21])), space=space), Budget(60)).trials
    assert all(space.pruned(one.architecture) == one.architecture for one in trials)
    draws = [one.why["draws"] for one in trials]
    assert min(draws) == 1 < max(draws)


def test_limits() -> None:
    limited = objective(limits={"parameters": 200_000.0})
    trials = run("reinforce", limited, Budget(40), epochs=12).trials
    assert all(limited.allowed(one.architecture) and one.epochs == 12 for one in trials)


def test_nothing_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("theta0.searchers.reinforce._TRIES", 40)
    with pytest.raises(Theta0Error, match="none of 40 architectures drawn from the policy may be evaluated; raise"):
        run("reinforce", Worth(lambda codes: 0.0, lambda codes: False), Budget(3))


@pytest.mark.parametrize("rate", [0, -1, math.inf, math.nan])
def test_learning_rates(rate: float) -> None:
    with pytest.raises(Theta0Error, match=f"a learning rate is more than zero and finite, not {rate}"):
        run("reinforce", objective(), Budget(3), learning_rate=rate)


@pytest.mark.parametrize("decay", [0, 1, -0.5, math.nan])
def test_decays(decay: float) -> None:
    with pytest.raises(Theta0Error, match=f"the decay of the baseline lies between 0 and 1, not at {decay}"):
        run("reinforce", objective(), Budget(3), decay=decay)
