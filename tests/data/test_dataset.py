"""Validation, statistics, fingerprint, epochs and scoring batches."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from theta0.data import Augmentation, Data, ImageDataset
from theta0.errors import DataError

IMAGES = torch.zeros(3, 1, 2, 2, dtype=torch.uint8)
LABELS = torch.tensor([0, 1, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": IMAGES.float()}, "uint8.*found .3, 1, 2, 2. torch.float32"),
        ({"images": IMAGES[:, 0]}, r"\(N, C, H, W\); found \(3, 2, 2\)"),
        ({"images": np.zeros((3, 1, 2, 2), np.uint8)}, "found a ndarray"),
        ({"labels": LABELS.int()}, "int64.*torch.int32"),
        ({"labels": LABELS[:, None]}, r"int64 tensor \(N,\).*\(3, 1\)"),
        ({"labels": LABELS[:2]}, "found 3 images, 2 labels"),
        ({"images": IMAGES[:0], "labels": LABELS[:0]}, "at least one image"),
        ({"images": IMAGES[:, :, :0]}, "at least one pixel"),
        ({"labels": LABELS + 1}, "0 to 1 for 2 classes; found 1 to 2"),
        ({"labels": LABELS - 1}, "found -1 to 0"),
        ({"classes": ["a", "b"]}, "tuple of names"),
        ({"classes": ("a", "a")}, "must differ.*: a"),
        ({"labels": LABELS.to("meta")}, "images are on cpu, labels on meta"),
    ],
)
def test_a_data_set_that_cannot_be_is_refused(change, message):
    fields = {"images": IMAGES, "labels": LABELS, "classes": ("a", "b"), "name": "tiny"}
    with pytest.raises(DataError, match=rf"'tiny'.*{message}"):
        ImageDataset(**(fields | change))


def test_shape_length_and_subset(random_dataset):
    data = random_dataset([4, 6], (3, 5, 4))
    assert (len(data), data.shape) == (10, (3, 5, 4))
    part = data.subset([7, 0, 7])
    assert torch.equal(part.images, data.images[[7, 0, 7]])
    assert torch.equal(part.labels, data.labels[[7, 0, 7]])
    assert part.classes == data.classes


@pytest.mark.parametrize("wrong", [[10], [-1], [], [True, False], [0.5], [[0, 1]]])
def test_subset_refuses_what_is_no_index(random_dataset, wrong):
    with pytest.raises(DataError, match="subset"):
        random_dataset([4, 6]).subset(wrong)


@settings(deadline=None, max_examples=20)
@given(shape=st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 5)), seed=st.integers(0, 99))
def test_mean_std_against_numpy(random_dataset, shape, seed):
    data = random_dataset([3, 4], shape, seed)
    pixels = data.images.numpy().astype(np.float64) / 255
    mean, std = data.mean_std()
    np.testing.assert_allclose(mean, pixels.mean((0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(std, pixels.std((0, 2, 3)), rtol=1e-12, atol=1e-15)


def test_mean_std_does_not_depend_on_the_chunks(random_dataset, monkeypatch):
    data = random_dataset([20, 30], (3, 7, 5))
    fingerprint, statistics = data.fingerprint(), data.mean_std()
    monkeypatch.setattr("theta0.data.dataset._CHUNK", 3 * 7 * 5 * 7)
    again = dataclasses.replace(data)
    assert again.mean_std() == statistics
    assert again.fingerprint() == fingerprint


@pytest.mark.parametrize("value", range(0, 256, 5))
def test_a_constant_channel_has_std_zero_and_becomes_zeros(value):
    images = torch.randint(256, (6, 2, 4, 4), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    images[:, 1] = value
    data = ImageDataset(images, torch.zeros(6, dtype=torch.int64), ("a",), "half constant")
    mean, std = data.mean_std()
    assert mean[1] == pytest.approx(value / 255)
    assert std[1] == 0.0
    x, _ = next(data.batches(6))
    assert bool(torch.isfinite(x).all())
    assert float(x[:, 1].abs().max()) < 1e-4
    assert float(x[:, 0].std()) == pytest.approx(1, abs=0.1)


def test_fingerprint_changes_with_everything_but_the_name(random_dataset):
    data = random_dataset([4, 6])
    images, labels = data.images.clone(), data.labels.clone()
    images[3, 0, 0, 0] ^= 1
    labels[3] = 1 - labels[3]
    changed = [
        dataclasses.replace(data, images=images),
        dataclasses.replace(data, labels=labels),
        dataclasses.replace(data, classes=("class0", "other")),
        dataclasses.replace(data, images=data.images.reshape(10, 3, 4, 5)),
        data.subset(list(range(9, -1, -1))),
    ]
    prints = [data.fingerprint(), *(each.fingerprint() for each in changed)]
    assert len(set(prints)) == len(prints)
    assert dataclasses.replace(data, name="else").fingerprint() == prints[0]
    strided = data.images.transpose(2, 3).contiguous().transpose(2, 3)
    assert not strided.is_contiguous()
    assert dataclasses.replace(data, images=strided).fingerprint() == prints[0]


def test_batches_in_order_normalise_every_image(random_dataset):
    data = random_dataset([5, 6])
    batches = list(data.batches(4))
    assert [len(y) for _, y in batches] == [4, 4, 3]
    x, y = (torch.cat(each) for each in zip(*batches, strict=True))
    assert x.dtype == torch.float32
    assert torch.equal(y, data.labels)
    mean, std = (torch.tensor(each, dtype=torch.float64)[:, None, None] for each in data.mean_std())
    torch.testing.assert_close(x.double(), (data.images.double() / 255 - mean) / std, atol=1e-5, rtol=0)
    assert [len(y) for _, y in data.batches(4, drop_last=True)] == [4, 4]


def test_batches_take_the_normalization_they_are_given(random_dataset):
    data = random_dataset([5, 6])
    x, _ = next(data.batches(11, normalization=((0.0,) * 3, (1.0,) * 3)))
    torch.testing.assert_close(x, data.images.float() / 255)
    with pytest.raises(DataError, match=r"1 means.*3 channels"):
        next(data.batches(4, normalization=((0.0,), (1.0,))))
    with pytest.raises(DataError, match="finite"):
        next(data.batches(4, normalization=((float("nan"),) * 3, (1.0,) * 3)))


def test_a_seed_permutes_and_repeats_and_leaves_the_global_seed(random_dataset):
    data = random_dataset([20, 30])
    state = torch.get_rng_state()
    first, again, other = (
        [torch.cat(each) for each in zip(*data.batches(8, seed=seed, augmentation=Augmentation(2)), strict=True)]
        for seed in (3, 3, 4)
    )
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[1], other[1])
    assert torch.equal(torch.get_rng_state(), state)
    plain = torch.cat([x for x, _ in data.batches(8, seed=3)])
    in_order = torch.cat([x for x, _ in data.batches(8)])
    assert not torch.equal(plain, in_order)
    assert sorted(map(tuple, plain.flatten(1).tolist())) == sorted(map(tuple, in_order.flatten(1).tolist()))


def test_batches_augment_normalised_images_with_the_generator_of_the_order(random_dataset):
    data = random_dataset([20, 30], (3, 8, 8))
    augmentation = Augmentation(2, True, 3)
    generator = torch.Generator().manual_seed(3)
    order = torch.randperm(50, generator=generator)
    plain = data.subset(order).batches(16, normalization=data.mean_std())
    for (x, y), (x_plain, y_plain) in zip(data.batches(16, seed=3, augmentation=augmentation), plain, strict=True):
        assert torch.equal(y, y_plain)
        assert torch.equal(x, augmentation(x_plain, generator))
        assert not torch.equal(x, x_plain)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "batch_size.*found 0"),
        ({"batch_size": 2.0}, "batch_size.*2.0"),
        ({"batch_size": 4, "augmentation": Augmentation()}, "give a seed"),
        ({"batch_size": 11, "drop_last": True}, "11 is larger than the 10 images"),
        ({"batch_size": 4, "seed": -1}, "seed.*-1"),
        ({"batch_size": 4, "seed": 0.5}, "seed.*0.5"),
    ],
)
def test_wrong_batches_fail_at_the_call(random_dataset, arguments, message):
    with pytest.raises(DataError, match=message):
        random_dataset([4, 6]).batches(**arguments)


@settings(deadline=None, max_examples=30)
@given(counts=st.lists(st.integers(3, 9), min_size=1, max_size=5), seed=st.integers(0, 99), data=st.data())
def test_a_balanced_batch_is_balanced_and_has_no_image_twice(random_dataset, counts, seed, data):
    dataset = random_dataset(counts, (1, 1, 1))
    # The position in the pixel, so that an image drawn twice shows.
    dataset = dataclasses.replace(dataset, images=torch.arange(len(dataset), dtype=torch.uint8).reshape(-1, 1, 1, 1))
    size = data.draw(st.integers(1, min(counts) * len(counts)))
    x, y = dataset.batch(size, seed, balanced=True, normalization=((0.0,), (1.0,)))
    position = (x.flatten() * 255).round().long()
    assert len(set(position.tolist())) == size
    assert torch.equal(dataset.labels[position], y)
    shares = [Counter(y.tolist())[label] for label in range(len(counts))]
    assert max(shares) - min(shares) <= 1


def test_a_plain_batch_repeats_and_can_be_everything(random_dataset):
    data = random_dataset([4, 6])
    x, y = data.batch(10, 0)
    assert sorted(y.tolist()) == sorted(data.labels.tolist())
    assert torch.equal(data.batch(4, 1)[0], data.batch(4, 1)[0])
    assert not torch.equal(data.batch(9, 1)[1], data.batch(9, 2)[1])
    assert x.shape == (10, 3, 5, 4)


def test_wrong_batch_sizes_say_what_is_possible(random_dataset):
    data = random_dataset([2, 8])
    with pytest.raises(DataError, match="batch of 11 images is larger than the data set of 10"):
        data.batch(11, 0)
    with pytest.raises(DataError, match="1 or more; found 0"):
        data.batch(0, 0)
    with pytest.raises(DataError, match="'class0' has 2; ask for 4 images at most"):
        data.batch(6, 0, balanced=True)
    assert data.batch(4, 0, balanced=True)[1].sort().values.tolist() == [0, 0, 1, 1]


def test_data_checks_that_train_and_test_fit(random_dataset):
    train, test = random_dataset([3, 3]), random_dataset([2, 2], seed=1)
    data = Data(train, test)
    assert data.normalization == train.mean_std() != test.mean_std()
    with pytest.raises(DataError, match="same classes"):
        Data(train, dataclasses.replace(test, classes=("class1", "class0")))
    with pytest.raises(DataError, match=r"\(3, 5, 4\) and \(3, 4, 4\)"):
        Data(train, random_dataset([2, 2], (3, 4, 4)))


def test_to_moves_both_tensors(random_dataset):
    moved = Data(random_dataset([3, 3]), random_dataset([2, 2])).to("cpu")
    assert moved.train.images.device == moved.train.labels.device == torch.device("cpu")
    assert moved.test is not None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_gpu_gives_the_same_batches_and_fingerprint(random_dataset):
    data = random_dataset([20, 30], (3, 8, 8))
    gpu = data.to("cuda")
    assert gpu.fingerprint() == data.fingerprint()
    assert dataclasses.replace(gpu).mean_std() == data.mean_std()
    augmentation = Augmentation(2, True, 3)
    pairs = zip(
        data.batches(16, seed=1, augmentation=augmentation),
        gpu.batches(16, seed=1, augmentation=augmentation),
        strict=True,
    )
    for (x, y), (x_gpu, y_gpu) in pairs:
        assert torch.equal(y, y_gpu.cpu())
        torch.testing.assert_close(x, x_gpu.cpu(), atol=1e-6, rtol=0)
    torch.testing.assert_close(gpu.batch(10, 0, balanced=True)[0].cpu(), data.batch(10, 0, balanced=True)[0])
