"""Numbers for people, and the little statistics of the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

import numpy as np
from numpy.typing import ArrayLike, NDArray

_NORMAL = 1.959964  # the 97.5 % quantile of the normal distribution


def wilson(percent: float, images: int) -> tuple[float, float]:
    """The 95 % interval, in percent, of a share that was found in ``images`` independent trials.

    E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 1927. Unlike mean and
    deviation it stays within 0 and 100, and has a width where all images are right.
    """
    share, squared = percent / 100, _NORMAL**2
    middle = (share + squared / (2 * images)) / (1 + squared / images)
    half = _NORMAL * math.sqrt(share * (1 - share) / images + squared / (4 * images**2)) / (1 + squared / images)
    return 100 * max(0.0, middle - half), 100 * min(1.0, middle + half)


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """From 1 for the smallest; equal values share the mean of their ranks."""
    given = np.asarray(values, dtype=np.float64)
    ordered = np.sort(given)
    low, high = (np.searchsorted(ordered, given, side=side) for side in ("left", "right"))
    return np.asarray((low + high + 1) / 2, dtype=np.float64)


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """The rank correlation; NaN where one of both is constant, or fewer than three pairs are there."""
    x, y = ranks(first), ranks(second)
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])


def mean_deviation(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and the deviation of a sample: NaN for one value."""
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return float(np.mean(values)), deviation


def number(value: object) -> float:
    """``value`` if it is a number, else NaN: what a run holds may be of another version, or missing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value)


def percent(value: float, digits: int = 2) -> str:
    """With a no-break space before the sign."""
    return f"{value:.{digits}f}\u00a0%"


def signed(value: float, digits: int = 2) -> str:
    """With a true minus."""
    return f"{value:+.{digits}f}".replace("-", "−")


def plural(count: int, one: str, many: str = "") -> str:
    """The count and its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def short(value: float) -> str:
    """Four digits or so, of any size."""
    if not math.isfinite(value):
        return {True: "∞", False: "−∞"}[value > 0] if math.isinf(value) else "not a number"
    size = abs(value)
    if value == round(value) and size < 1e6:
        return f"{value:,.0f}".replace("-", "−")
    if 1e-3 <= size < 1e5:
        return f"{value:,.{max(0, 3 - math.floor(math.log10(size)))}f}".replace("-", "−")
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}×10{_raised(int(exponent))}".replace("-", "−")


def _raised(exponent: int) -> str:
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def power(exponent: int) -> str:
    """A power of ten, for an axis; small ones are written out."""
    return f"{10**exponent:,}" if 0 <= exponent <= 3 else f"10{_raised(exponent)}"


def amount(value: float) -> str:
    """A count with k, M or G."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * size:  # it is rounded to three digits
            return f"{value / size:.3g}\u00a0{letter}"
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """In the two largest units; nothing is said of the second one where it is 0."""
    if not math.isfinite(seconds):
        return "unknown"
    if seconds < 100:
        return f"{seconds:.3g}\u00a0s"
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    if minutes < 100:
        return f"{minutes}\u00a0min" + (f" {rest}\u00a0s" if rest else "")
    return f"{minutes // 60:,}\u00a0h" + (f" {minutes % 60}\u00a0min" if minutes % 60 else "")


def moment(seconds: float) -> str:
    """A point in time with its zone."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S %Z}"
