from __future__ import annotations

import torch
from torch import nn

from theta0.averaging import Average


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = self.second = nn.Linear(2, 2)
        self.norm = nn.BatchNorm1d(2)


def test_against_a_loop() -> None:
    torch.manual_seed(0)
    model = Tied()
    average = Average(model, 0.5)
    wanted = {name: value.clone().double() for name, value in model.state_dict().items()}
    for step in range(1, 20):
        with torch.no_grad():
            for value in (*model.parameters(), model.norm.running_mean, model.norm.running_var):
                value.normal_()
            model.norm.num_batches_tracked += 1
        average.update()
        decay = min(0.5, (1 + step) / (10 + step))
        for name, value in model.state_dict().items():
            floating = value.is_floating_point()
            wanted[name] = decay * wanted[name] + (1 - decay) * value.double() if floating else value.clone()
    found = average.model.state_dict()
    assert int(found["norm.num_batches_tracked"]) == 19
    for name, value in wanted.items():
        torch.testing.assert_close(found[name].double(), value.double(), rtol=1e-5, atol=1e-6)
    assert not any(parameter.requires_grad for parameter in average.model.parameters())
