"""Small networks of many kinds, for the tests of scores."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from theta0.space import get_space


class Residual(nn.Module):
    """Batch normalisation, a shortcut with in-place operations, grouped and dilated convolutions."""

    def __init__(self, norm: bool = True) -> None:
        super().__init__()
        make = nn.BatchNorm2d if norm else lambda channels: nn.Identity()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=not norm), make(8), nn.ReLU(inplace=True))
        self.body = nn.Sequential(
            nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=4, bias=False),
            make(8),
            nn.ReLU(inplace=True),
            nn.Conv2d(8, 8, (3, 1), padding=(1, 0), groups=2),
            make(8),
        )
        self.down = nn.Conv2d(8, 6, 3, stride=2, padding=1)
        self.head = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        out = self.body(x)
        out += x
        return self.head(torch.relu(self.down(out)).mean(dim=(2, 3)))


class Shared(nn.Module):
    """One convolution called twice, layer and group normalisation, a plain parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 1)
        self.twice = nn.Conv2d(6, 6, 3, padding=1)
        self.group, self.layer = nn.GroupNorm(2, 6), nn.LayerNorm(6)
        self.gain = nn.Parameter(torch.ones(6))
        self.head = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = self.twice(torch.relu(self.group(self.twice(x))))
        return self.head(torch.relu(self.layer(x.mean(dim=(2, 3)))) * self.gain)


class SmallViT(nn.Module):
    """Patches, a class token, self-attention."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, stride=4)
        self.token, self.place = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(1, 5, 8))
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(x), -1, -1), tokens], dim=1) + self.place
        return self.head(self.block(tokens)[:, 0])


class Rows(nn.Module):
    """An LSTM over the rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(24, 7, batch_first=True), nn.Linear(7, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x.permute(0, 2, 1, 3).flatten(2))[0][:, -1])


def cell() -> nn.Module:
    space = get_space("nasbench201")
    text = "|nor_conv_3x3~0|+|nor_conv_1x1~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|"
    return space.build(space.parse(text), seed=0, channels=4, cells=1, classes=5)


NETWORKS = {
    "mlp": lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, 5)),
    "plain": lambda: Residual(norm=False),
    "residual": Residual,
    "shared": Shared,
    "vit": SmallViT,
    "lstm": Rows,
    "cell": cell,
}


def network(name: str) -> nn.Module:
    """A network by name, seeded, in float64."""
    torch.manual_seed(0)
    return NETWORKS[name]().double()


def batch(size: int = 6, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Images (size, 3, 8, 8) in float64 and labels of five classes."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, 3, 8, 8, generator=generator, dtype=torch.float64), torch.arange(size) % 5
