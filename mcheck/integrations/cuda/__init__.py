"""Launches of CUDA C++ programs: a preloaded library that writes a launch file for every kernel launch.

``mcheck cuda -- ./program`` does all of this. ``python -m mcheck.integrations.cuda recorder.so`` compiles the library
with the system's C compiler; ``mcheck/frontend/cuda/recorder/recorder.h`` documents its use and what it stands in for.
"""

from __future__ import annotations

from mcheck.frontend.cuda.recorder import build

__all__ = ["build"]
