"""Image files to one uint8 tensor, through Pillow.

Grey and colour: if any file has colour, all become RGB; otherwise all stay grey. Transparency is dropped, an animation
gives its first frame, and a photograph is turned as its EXIF orientation says. 16-bit and float pixels are refused:
squeezing them into bytes is a choice that belongs to the user.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from theta0.data.resize import check_size, fit
from theta0.errors import DataError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".gif", ".tif", ".tiff")
_GREY = {"1", "L", "LA"}
_EIGHT_BITS = {"1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "LAB", "HSV"}
_ORIENTATION = 0x0112


@dataclass(frozen=True)
class Survey:
    """What the headers of some image files say: how many have each (width, height), and whether any has colour."""

    sizes: Counter[tuple[int, int]]
    colour: bool


def listed(folder: Path) -> list[Path]:
    """The image files directly in ``folder``, by name; hidden files and other suffixes are left out."""
    return sorted(
        (f for f in folder.iterdir() if f.suffix.lower() in SUFFIXES and not f.name.startswith(".") and f.is_file()),
        key=lambda file: file.name,
    )


def survey(files: Iterable[Path]) -> Survey:
    """Reads the headers only, so that a set of mixed sizes is refused before an hour of decoding."""
    pillow = _pillow()
    sizes: Counter[tuple[int, int]] = Counter()
    colour = False
    for file in files:
        with _explained(file), pillow.open(file) as image:
            _check_mode(file, image.mode)
            width, height = image.size
            # EXIF orientations 5 to 8 are turned by a quarter.
            if image.getexif().get(_ORIENTATION, 1) in (5, 6, 7, 8):
                width, height = height, width
            sizes[width, height] += 1
            colour = colour or image.mode not in _GREY
    return Survey(sizes, colour)


def check_sizes(found: Survey, where: Path) -> None:
    """One size, or an error that lists the sizes and the way out."""
    if len(found.sizes) > 1:
        least = min(min(size) for size in found.sizes)
        common = ", ".join(f"{count} of {w} x {h}" for (w, h), count in found.sizes.most_common(4))
        raise DataError(
            f"{where}: expected images of one size, found {len(found.sizes)} sizes ({common}"
            f"{', ...' if len(found.sizes) > 4 else ''}); load(..., size={least}), or --size {least} "
            f"of the command, scales the shorter side to that many pixels and keeps the central square"
        )


def decode(files: Sequence[Path], *, colour: bool, size: int | None) -> Tensor:
    """(N, 1 or 3, H, W) uint8, in the order of ``files``; all of one size unless ``size`` is given."""
    pillow = _pillow()
    if size is not None:
        check_size(size)
    images: Tensor | None = None
    for position, file in enumerate(files):
        with _explained(file), pillow.open(file) as image:
            _check_mode(file, image.mode)
            pixels = _pixels(image, colour)
        if size is not None:
            pixels = fit(pixels[None], size)[0]
        if images is None:
            images = torch.empty(len(files), *pixels.shape, dtype=torch.uint8)
        if pixels.shape != images.shape[1:]:
            raise DataError(f"{file}: expected shape {tuple(images.shape[1:])}, found {tuple(pixels.shape)}")
        images[position] = pixels
    if images is None:
        raise DataError("no image file to decode")
    return images


def _check_mode(file: Path, mode: str) -> None:
    if mode not in _EIGHT_BITS:
        raise DataError(
            f"{file}: expected 8 bits per channel, found Pillow mode {mode!r}; convert the images to 8 bits, or load "
            f"them as float arrays in [0, 1]"
        )


def _pixels(image: object, colour: bool) -> Tensor:
    from PIL import Image, ImageOps

    assert isinstance(image, Image.Image)
    upright = ImageOps.exif_transpose(image)
    if upright.mode in ("P", "PA"):
        # Straight to RGB, Pillow warns about palettes with transparent entries.
        upright = upright.convert("RGBA")
    array = np.array(upright.convert("RGB" if colour else "L"))
    return torch.from_numpy(array).permute(2, 0, 1) if colour else torch.from_numpy(array)[None]


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    """Whatever Pillow says about a file it cannot read, with the file's name; a decompression bomb as well."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    except DataError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(
            f"{file}: expected an image of at most {Image.MAX_IMAGE_PIXELS} pixels, found more ({error}); scale it down"
        ) from error
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        raise DataError(f"{file}: expected a readable image, found: {error}; replace or remove the file") from error


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        raise DataError("image files are read with Pillow, which is not installed; pip install pillow") from error
    return Image
