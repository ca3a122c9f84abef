from __future__ import annotations

from typing import Any

import pytest

from theta0.errors import Theta0Error
from theta0.seeding import derived


def test_parts_have_seeds_of_their_own() -> None:
    wanted = [derived(seed, *parts) for seed in (0, 1) for parts in ((), (0,), ("0",), (0, 1), (1, 0), ("a", 1))]
    assert len(set(wanted)) == len(wanted)
    assert all(0 <= seed < 2**63 for seed in wanted)


def test_the_same_on_every_machine() -> None:
    assert derived(0, "epoch", 1) == 3808558412218152728


@pytest.mark.parametrize("seed", [-1, 2**63, 1.0, True, None])
def test_what_is_no_seed(seed: Any) -> None:
    with pytest.raises(Theta0Error, match=r"0 to 2\*\*63"):
        derived(seed)
