from __future__ import annotations

import numpy as np
import pytest
import torch

from theta0.errors import ParseError, Theta0Error
from theta0.network.cells import DropPath, set_drop_path
from theta0.network.darts import DartsNetwork
from theta0.space import get_space
from theta0.spaces.darts import DARTS, Genotype

space = DARTS()
SMALL = {"channels": 4, "layers": 3}


def sampled(seed: int = 0) -> Genotype:
    return space.sample(np.random.default_rng(seed))


def test_size_is_that_of_nasi() -> None:
    assert space.size == 1_037_664_180**2


def test_notation_of_the_darts_code() -> None:
    text = (
        "Genotype(normal=[('sep_conv_3x3', 0), ('sep_conv_3x3', 1), ('sep_conv_3x3', 0), ('sep_conv_3x3', 1), "
        "('sep_conv_3x3', 1), ('skip_connect', 0), ('skip_connect', 0), ('dil_conv_3x3', 2)], "
        "normal_concat=[2, 3, 4, 5], reduce=[('max_pool_3x3', 0), ('max_pool_3x3', 1), ('skip_connect', 2), "
        "('max_pool_3x3', 1), ('max_pool_3x3', 0), ('skip_connect', 2), ('skip_connect', 2), ('max_pool_3x3', 1)], "
        "reduce_concat=range(2, 6))"
    )
    assert space.parse(text) == space.parse("DARTS_V2") == space.parse(" darts-v2 ")


GOOD = space.format(space.parse("SNAS"))


@pytest.mark.parametrize(
    ("old", "new", "at", "expected"),
    [
        ("Genotype(", "Genotyp(", "Genotyp(", "Genotype"),
        ("'sep_conv_3x3', 0", "'sep_conv_9x9', 0", "'sep_conv_9x9'", "one of max_pool_3x3"),
        ("'sep_conv_3x3', 0", "'sep_conv_3x3', 2", "2), ", "a node number below 2"),
        ("normal_concat=[2, 3, 4, 5]", "normal_concat=[2, 2]", "[2, 2]", "different nodes from 2 to 5"),
        ("normal_concat=[2, 3, 4, 5]", "normal_concat=[]", "[], ", "different nodes"),
        (", normal_concat=[2, 3, 4, 5]", "", "Genotype", "normal_concat"),
        ("[('sep_conv_3x3', 0), ", "[", "[('sep", "two (operation, source) pairs"),
        ("Genotype(", "__import__('os').system(", "__import__", "Genotype"),
        ("reduce=[(", "reduce=[((", "((", "Genotype"),
    ],
)
def test_parse_errors_point_at_the_place(old: str, new: str, at: str, expected: str) -> None:
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    with pytest.raises(ParseError) as caught:
        space.parse(text)
    assert expected in caught.value.expected
    if new != "reduce=[((":  # Python's parser sees the missing bracket elsewhere
        assert caught.value.position == text.index(at)


def test_position_counts_blanks_and_lines() -> None:
    text = "\n  " + GOOD.replace(", ", ",\n", 3).replace("'skip_connect'", "'skip'", 1)
    with pytest.raises(ParseError) as caught:
        space.parse(text)
    assert caught.value.position == text.index("'skip'")


def test_cells_outside_the_space_are_built_but_not_encoded() -> None:
    nasnet = space.parse("NASNet")
    assert not space.holds(nasnet)
    assert all(space.holds(sampled(seed)) for seed in range(20))
    with pytest.raises(Theta0Error, match="is not in the space darts"):
        space.encode(nasnet)
    assert space.build(nasnet, seed=0, **SMALL)(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_skips_from_inputs_have_weights_only_in_reduction_cells() -> None:
    direct = space.parse(GOOD)
    cell = direct.normal
    assert "skip_connect" not in space.canonical(direct).normal.ops  # type: ignore[attr-defined]
    assert "skip_connect" in space.canonical(Genotype(cell, cell)).reduce.ops  # type: ignore[attr-defined]


def test_imagenet_limit_names_the_channels_that_fit() -> None:
    with pytest.raises(Theta0Error, match=r"limit max_flops is 600,000,000; channels=\d+ fits") as caught:
        space.build(space.parse("WIDE"), "imagenet")
    channels = int(str(caught.value).split("channels=")[1].split()[0])
    free = {"skeleton": "imagenet", "max_flops": None}
    assert space.measure(space.parse("WIDE"), channels=channels, **free).flops < 600_000_000
    assert space.measure(space.parse("WIDE"), channels=channels + 2, **free).flops >= 600_000_000
    assert space.measure(space.parse("DARTS_V2"), "imagenet").flops < 600_000_000
    with pytest.raises(Theta0Error, match="no number of channels fits"):
        space.build(space.parse("WIDE"), "imagenet", max_flops=1000)


@pytest.mark.parametrize(("skeleton", "layers"), [("cifar", 20), ("imagenet", 14), ("search", 8)])
def test_skeletons_have_two_reductions(skeleton: str, layers: int) -> None:
    with torch.device("meta"):
        model = space.build(space.parse("DARTS_V2"), skeleton, seed=0)
    assert isinstance(model, DartsNetwork)
    normal, reduce = space.parse("DARTS_V2")
    cells = [module.cell.cell for module in model.cells]  # type: ignore[union-attr]
    assert len(cells) == layers
    assert [i for i, cell in enumerate(cells) if cell == reduce] == [layers // 3, 2 * layers // 3]
    assert all(cell in (normal, reduce) for cell in cells)


@pytest.mark.parametrize(("skeleton", "sides"), [("cifar", (32, 16, 8)), ("imagenet", (28, 14, 7))])
def test_resolutions(skeleton: str, sides: tuple[int, ...]) -> None:
    options = space.options(skeleton, max_flops=None)
    with torch.device("meta"):
        model = space.build(space.parse("DARTS_V2"), options, seed=0).eval()
        seen: list[int] = []
        for module in model.cells:  # type: ignore[union-attr]
            module.register_forward_hook(lambda _, __, out: seen.append(out.shape[-1]))
        model(torch.zeros(1, *options.shape))
    assert tuple(dict.fromkeys(seen)) == sides


@pytest.mark.parametrize("skeleton", ["cifar", "imagenet"])
def test_auxiliary_tower(skeleton: str) -> None:
    options = space.options(skeleton, channels=4, auxiliary=True)
    model = space.build(sampled(), options, seed=0)
    x = torch.randn(2, *options.shape)
    logits, auxiliary = model.with_auxiliary(x)  # type: ignore[operator]
    assert logits.shape == auxiliary.shape == (2, options.classes)
    (logits.sum() + auxiliary.sum()).backward()
    assert all(p.grad is not None for p in model.auxiliary.parameters())  # type: ignore[union-attr]
    plain = space.measure(sampled(), skeleton, channels=4)
    assert space.measure(sampled(), options).parameters == plain.parameters


def test_auxiliary_tower_needs_room() -> None:
    with pytest.raises(Theta0Error, match="images of 8 x 8 give 2 x 2 there"):
        space.build(sampled(), auxiliary=True, shape=(1, 8, 8), **SMALL)
    with pytest.raises(Theta0Error, match="has no auxiliary tower"):
        space.build(sampled(), seed=0, **SMALL).with_auxiliary(torch.zeros(1, 3, 32, 32))  # type: ignore[operator]


def test_drop_path_touches_training_only_and_no_identity() -> None:
    model = space.build(space.parse("SNAS"), seed=0, **SMALL)
    x = torch.randn(4, 3, 32, 32)
    model.eval()
    calm = model(x)
    set_drop_path(model, 0.5)
    torch.testing.assert_close(model(x), calm)
    paths = [module for module in model.modules() if isinstance(module, DropPath)]
    operations = [op for cell in model.cells for op in cell.cell.operations]  # type: ignore[union-attr]
    assert len(paths) == sum(not isinstance(op, torch.nn.Identity) for op in operations)
    model.train()
    assert not torch.equal(model(x), model(x))


def test_odd_images_and_short_stacks_are_refused() -> None:
    with pytest.raises(Theta0Error, match="even height and width, not 15 x 15"):
        space.measure(sampled(), shape=(3, 30, 30), channels=4, layers=6)
    with pytest.raises(Theta0Error, match="a stack of 2 cells"):
        space.build(sampled(), layers=2)


def test_is_registered() -> None:
    assert isinstance(get_space("darts"), DARTS)
