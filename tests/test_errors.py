from __future__ import annotations

from theta0.errors import DataError, ParseError, Theta0Error, nearest


def test_one_family_of_value_errors() -> None:
    assert issubclass(Theta0Error, ValueError)
    assert issubclass(DataError, Theta0Error)
    assert issubclass(ParseError, Theta0Error)


def test_parse_error_points_into_long_texts() -> None:
    text = "a" * 300 + "!" + "b" * 300
    lines = str(ParseError(text, 300, "a letter")).splitlines()
    assert lines[0] == "expected a letter at position 300, found '!'"
    assert lines[1][lines[2].index("^")] == "!"
    assert len(lines[1]) < 130


def test_parse_error_at_the_end() -> None:
    assert "found the end of the text" in str(ParseError("abc", 3, "more"))


def test_nearest() -> None:
    assert nearest("NASnet", ["NASNet", "ENAS", "other"]).startswith("did you mean NASNet")
    assert nearest("qqq", ["b", "a"]) == "known: a, b"
    assert nearest("qqq", []) == "known: none"
