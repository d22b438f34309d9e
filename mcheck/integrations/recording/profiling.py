"""Triton's profiler where no kernel runs: it starts, and has nothing to show."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest import mock

from mcheck.integrations.recording.outcome import NumbersNotComputed

_CALLS = ("start", "activate", "deactivate", "finalize")
VIEWER = "triton.profiler.viewer"


@contextmanager
def unprofiled() -> Iterator[None]:
    """Inside, the profiler asks no device. A test that reads a profile ends there, as one that needs a number does."""
    try:
        import triton.profiler as profiler
    except ImportError:
        yield
        return
    viewer = ModuleType(VIEWER)
    viewer.__dict__.update(parse=_no_profile, print_tree=_no_profile)
    calls: dict[str, Any] = {name: _nothing for name in _CALLS if hasattr(profiler, name)}
    with mock.patch.multiple(profiler, **calls), mock.patch.dict(sys.modules, {VIEWER: viewer}):
        yield


def _nothing(*_: Any, **__: Any) -> int:
    """The number of a session."""
    return 0


def _no_profile(*_: Any, **__: Any) -> Any:
    raise NumbersNotComputed("the profile", "of kernels")
