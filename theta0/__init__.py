"""theta0 finds a strong neural network for somebody's images at initialization.

Names are loaded when they are first used: ``import theta0`` costs nothing, and torch comes only where networks do.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from theta0.data import load as load
    from theta0.errors import DataError as DataError
    from theta0.errors import ParseError as ParseError
    from theta0.errors import Theta0Error as Theta0Error
    from theta0.estimator import Searcher as Searcher
    from theta0.graph import Cell as Cell
    from theta0.graph import depth as depth
    from theta0.graph import width as width
    from theta0.job import resume as resume
    from theta0.job import search as search
    from theta0.pool import PoolScores as PoolScores
    from theta0.pool import score_pool as score_pool
    from theta0.pool import shipped as shipped
    from theta0.scoring import Records as Records
    from theta0.scoring import score as score
    from theta0.space import Choice as Choice
    from theta0.space import Chosen as Chosen
    from theta0.space import Skeleton as Skeleton
    from theta0.space import Space as Space
    from theta0.space import get_space as get_space

__version__ = "0.1.0"

_NAMES = {
    "Cell": "theta0.graph:Cell",
    "Choice": "theta0.space:Choice",
    "Chosen": "theta0.space:Chosen",
    "DataError": "theta0.errors:DataError",
    "ParseError": "theta0.errors:ParseError",
    "PoolScores": "theta0.pool:PoolScores",
    "Searcher": "theta0.estimator:Searcher",
    "resume": "theta0.job:resume",
    "search": "theta0.job:search",
    "Records": "theta0.scoring:Records",
    "Skeleton": "theta0.space:Skeleton",
    "Space": "theta0.space:Space",
    "Theta0Error": "theta0.errors:Theta0Error",
    "depth": "theta0.graph:depth",
    "load": "theta0.data:load",
    "score": "theta0.scoring:score",
    "score_pool": "theta0.pool:score_pool",
    "shipped": "theta0.pool:shipped",
    "get_space": "theta0.space:get_space",
    "width": "theta0.graph:width",
}
__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'theta0' has no attribute {name!r}")
    module, _, attribute = _NAMES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return [*globals(), *_NAMES]
