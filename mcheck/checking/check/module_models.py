"""The memory model of a module: that of the PTX ISA that its ``.version`` names."""

from __future__ import annotations

import re

from mcheck.checking.run.case import DEFAULT_MODEL
from mcheck.frontend.ptx.module import parse_version

MODELS = (((9, 4), "ptx-9.5"), ((9, 3), "ptx-9.3"))
"""The first version of each model but the default, the latest first. What ptx-9.5 adds is from 9.4, or is not in it."""
_VERSION = re.compile(r"^\s*\.version\s+(\d+\.\d+)", re.MULTILINE)


def model_of_version(version: tuple[int, int]) -> str:
    """The name of the model for a version of PTX."""
    return next((name for first, name in MODELS if version >= first), DEFAULT_MODEL)


def model_of_text(text: str) -> str:
    """The name of the model for a module, of which only its ``.version`` is read."""
    found = _VERSION.search(text)
    return model_of_version(parse_version(found[1]) if found else (0, 0))
