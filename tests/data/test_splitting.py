"""Stratified splits: disjoint, complete, and fair to every class."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from theta0.data import ImageDataset, split
from theta0.data.splitting import largest_remainder
from theta0.errors import DataError


@pytest.fixture(scope="session")
def numbered(random_dataset):
    """Each image holds its own position, in two pixels."""

    def make(counts: list[int]) -> ImageDataset:
        dataset = random_dataset(counts, (1, 1, 2))
        position = torch.arange(len(dataset))
        images = torch.stack([position // 256, position % 256], dim=1).to(torch.uint8)[:, None, None]
        return dataclasses.replace(dataset, images=images)

    return make


def positions(part: ImageDataset) -> list[int]:
    return (part.images[:, 0, 0, 0].long() * 256 + part.images[:, 0, 0, 1]).tolist()


@settings(deadline=None, max_examples=40)
@given(
    counts=st.lists(st.integers(4, 40), min_size=1, max_size=5),
    weights=st.lists(st.integers(1, 9), min_size=2, max_size=4),
    seed=st.integers(0, 99),
    stratified=st.booleans(),
)
def test_parts_are_disjoint_complete_and_fair(numbered, counts, weights, seed, stratified):
    fractions = [weight / sum(weights) for weight in weights]
    dataset = numbered(counts)
    groups = counts if stratified else [sum(counts)]
    totals = [sum(sizes) for sizes in zip(*(largest_remainder(count, fractions) for count in groups), strict=True)]
    if min(totals) == 0:
        with pytest.raises(DataError, match="rounds to no image"):
            split(dataset, fractions, seed=seed, stratified=stratified)
        return
    parts = split(dataset, fractions, seed=seed, stratified=stratified)
    assert [len(part) for part in parts] == totals
    assert sorted(index for part in parts for index in positions(part)) == list(range(len(dataset)))
    for fraction, part in zip(fractions, parts, strict=True):
        assert torch.equal(part.labels, dataset.labels[positions(part)])
        assert positions(part) == sorted(positions(part))
        for label in range(len(counts)) if stratified else []:
            assert abs(int((part.labels == label).sum()) - counts[label] * fraction) < 1
        if not stratified:
            assert abs(len(part) - len(dataset) * fraction) < 1


@settings(deadline=None, max_examples=100)
@given(total=st.integers(0, 10_000), weights=st.lists(st.integers(1, 50), min_size=1, max_size=6))
def test_largest_remainder_adds_up_to_within_one(total, weights):
    fractions = [weight / sum(weights) for weight in weights]
    sizes = largest_remainder(total, fractions)
    assert sum(sizes) == total
    assert all(abs(size - total * fraction) < 1 + 1e-6 for size, fraction in zip(sizes, fractions, strict=True))


def test_the_seed_decides(numbered):
    dataset = numbered([30, 30])
    chosen = [positions(split(dataset, (0.5, 0.5), seed=seed)[0]) for seed in (0, 0, 1)]
    assert chosen[0] == chosen[1] != chosen[2]


def test_a_class_that_is_too_small_is_named_with_its_count(numbered):
    with pytest.raises(DataError, match=r"into 3 parts.*'class1' has 2; .*stratified=False"):
        split(numbered([9, 2]), (0.4, 0.3, 0.3), seed=0)
    assert sum(len(part) for part in split(numbered([9, 2]), (0.4, 0.3, 0.3), seed=0, stratified=False)) == 11


def test_a_class_without_images_is_no_hindrance(numbered):
    parts = split(numbered([6, 0, 6]), (0.5, 0.5), seed=0)
    assert [len(part) for part in parts] == [6, 6]
    assert parts[0].classes == ("class0", "class1", "class2")


@pytest.mark.parametrize("wrong", [(0.5, 0.4), (1.0,), (), (1.2, -0.2), (1.0, 0.0), (float("nan"), 0.5)])
def test_fractions_that_do_not_add_up(numbered, wrong):
    with pytest.raises(DataError, match="fractions"):
        split(numbered([6, 6]), wrong, seed=0)


def test_a_part_that_rounds_to_nothing(numbered):
    with pytest.raises(DataError, match=r"0\.01.*rounds to no image"):
        split(numbered([6, 6]), (0.99, 0.01), seed=0)
