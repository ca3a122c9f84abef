from __future__ import annotations

import pytest
import torch

from theta0.cli import main
from theta0.device import resolved
from theta0.errors import Theta0Error


def test_auto_is_the_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for there, found in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert resolved("auto") == found
    assert resolved("cpu") == "cpu"


def test_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(Theta0Error, match="'cuda:1' is not there: torch finds no GPU; take --device cpu"):
        resolved("cuda:1")


@pytest.mark.parametrize(
    "command",
    [
        ["score", "nasbench201", "--pool", "2", "--data", "digits"],
        ["reproduce", "nasi", "--table", "7", "--images", "digits"],
    ],
)
def test_commands_say_so(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--device", "gpu7"]) == 2
    assert capsys.readouterr().err == "theta0: error: there is no device 'gpu7'; take cpu, cuda or auto\n"
