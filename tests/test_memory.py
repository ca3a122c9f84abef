"""Keeping blocks is for the whole process, so it is tried in another one."""

from __future__ import annotations

import platform
import subprocess
import sys


def test_blocks_are_kept() -> None:
    code = "from theta0.memory import keep_blocks; print(keep_blocks())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(platform.libc_ver()[0] == "glibc")
