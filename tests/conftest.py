from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest
import torch

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("THETA0_TEST_DATA", ROOT / "../shared/data")).resolve()

hypothesis.settings.register_profile("theta0", deadline=None)  # a loaded machine is not a bug
hypothesis.settings.load_profile("theta0")
torch.set_num_threads(1)  # pytest-xdist runs one process for each core


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the real benchmark tables and images."""
    if not SHARED.is_dir():
        pytest.skip(f"no test data at {SHARED}; set THETA0_TEST_DATA to the folder that has nb201.parquet")
    return SHARED
