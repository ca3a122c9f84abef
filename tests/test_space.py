from __future__ import annotations

import pytest

from theta0.errors import ParseError
from theta0.graph import Cell
from theta0.space import Chosen, Supercell, get_space

PLAIN = "examples/plain_space.py:PlainResNet"


def test_chosen_values_by_name() -> None:
    chosen = get_space(PLAIN).parse(" depth=2 ,width = 16, kernel=3 ")
    assert chosen == Chosen(("depth", "width", "kernel"), (2, 16, 3))
    assert (chosen.depth, chosen.width, chosen.kernel) == (2, 16, 3)
    with pytest.raises(AttributeError, match="no choice is called 'widht'; did you mean width"):
        _ = chosen.widht


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("width=16", 0, "'depth='"),
        ("depth=4, width=16, kernel=3", 6, "one of 1, 2, 3 for depth"),
        ("depth=2 width=16, kernel=3", 7, "', width='"),
        ("depth=2, width=16", 17, "', kernel='"),
        ("depth=2, width=16, kernel=3, more=1", 27, "the end"),
    ],
)
def test_default_notation_points_at_the_place(text: str, position: int, expected: str) -> None:
    with pytest.raises(ParseError) as caught:
        get_space(PLAIN).parse(text)
    assert (caught.value.position, caught.value.expected) == (position, expected)


def test_supercell_holds_its_parts_only() -> None:
    union = Supercell(1, 3, {(0, 1): ("a", "b"), (1, 2): ("",)})
    assert union.holds(Cell.parse("1 in; 1 = a(0) + b(0); out = 1"))
    for other in ("1 in; 1 = c(0); out = 1", "1 in; 1 = a(0); out = 0", "1 in; out = 0", "1 in; 1:a = 0; out = 1"):
        assert not union.holds(Cell.parse(other))
    nodes = Supercell(1, 3, {(0, 1): ("",), (1, 2): ("",)}, (("a", "b"),))
    assert nodes.holds(Cell.parse("1 in; 1:a = 0; out = 1"))
    assert not nodes.holds(Cell.parse("1 in; 1:c = 0; out = 1"))
