"""Placeholders in the code of copies: ``{dst}`` etc. for the operands of the test, ``{{`` for a brace."""

from __future__ import annotations

import re
from collections.abc import Mapping

NAMES = ("src", "dst", "bar", "map", "value", "mask", "plain", "plainbar")
_BRACES = re.compile(r"\{\{|\}\}|\{(\w*)\}|[{}]")


def find_unknown_placeholder(code: str) -> str | None:
    """The first unknown placeholder of a code, if any."""
    for found in _BRACES.finditer(code):
        if found[0] not in ("{{", "}}") and found[1] not in NAMES:
            end = code.find("}", found.start())
            return code[found.start() : found.start() + 40 if end < 0 else min(end + 1, found.start() + 40)]
    return None


def fill_placeholders(code: str, operands: Mapping[str, str]) -> str:
    """The code with its operands; missing operands are empty."""
    return _BRACES.sub(lambda found: found[0][0] if found[1] is None else operands.get(found[1], ""), code)
