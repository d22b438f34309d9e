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
    before = sys.modules.get(VIEWER)
    with mock.patch.multiple(profiler, **calls):
        sys.modules[VIEWER] = viewer  # mock.patch.dict would forget all modules that are imported inside
        try:
            yield
        finally:
            if before is None:
                del sys.modules[VIEWER]
            else:
                sys.modules[VIEWER] = before


def _nothing(*_: Any, **__: Any) -> int:
    """The number of a session."""
    return 0


def _no_profile(*_: Any, **__: Any) -> Any:
    raise NumbersNotComputed("the profile", "of kernels")
