from __future__ import annotations

import sys
from pathlib import Path

import pytest

from theta0.errors import Theta0Error
from theta0.registry import Registry


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "things_of_a_user"
    folder.mkdir()
    (folder / "__init__.py").write_text("from theta0.registry import Registry\nthings = Registry('thing', __name__)\n")
    for name in ("apple", "pear"):
        (folder / f"{name}.py").write_text(
            f"from things_of_a_user import things\n@things.register('{name}')\nclass Fruit:\n    pass\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    yield "things_of_a_user"  # type: ignore[misc]
    for name in [name for name in sys.modules if name.startswith("things_of_a_user")]:
        del sys.modules[name]


def registry(package: str) -> Registry[type]:
    import importlib

    found: Registry[type] = importlib.import_module(package).things
    return found


def test_finds_what_files_decorate(package: str) -> None:
    things = registry(package)
    assert f"{package}.apple" not in sys.modules  # nothing is imported before the first look-up
    assert things.names() == ["apple", "pear"]
    assert things.get("apple").__module__ == f"{package}.apple"


def test_unknown_names_get_the_nearest(package: str) -> None:
    with pytest.raises(Theta0Error, match="no thing is called 'aple'; did you mean apple"):
        registry(package).get("aple")
    with pytest.raises(Theta0Error, match="no thing is called 'zzz'; known: apple, pear"):
        registry(package).get("zzz")


def test_one_name_for_two_components(package: str) -> None:
    things = registry(package)
    things.names()
    with pytest.raises(Theta0Error, match="two things are called 'apple'"):
        things.register("apple")(int)


def test_import_path_and_file(package: str, tmp_path: Path) -> None:
    things = registry(package)
    assert things.get(f"{package}.pear:Fruit") is things.get("pear")
    file = tmp_path / "mine.py"
    file.write_text("from dataclasses import dataclass\n@dataclass\nclass Mine:\n    x: int = 3\n")
    assert things.get(f"{file}:Mine")().x == 3


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("no_such_module:X", "cannot be imported: No module named 'no_such_module'"),
        ("no_such_file.py:X", "cannot be imported: .*no_such_file.py"),
        ("things_of_a_user.apple:Friut", "has no 'Friut'; did you mean Fruit?"),
    ],
)
def test_wrong_paths(package: str, path: str, words: str) -> None:
    with pytest.raises(Theta0Error, match=words):
        registry(package).get(path)


def test_an_error_in_the_user_s_file_is_his(package: str, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        registry(package).get(f"{file}:X")
    assert "theta0_user_broken" not in sys.modules
