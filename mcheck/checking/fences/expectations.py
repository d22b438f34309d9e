"""What a program says of its findings: after a repair it has none."""

from __future__ import annotations

import re

_EXPECTED = re.compile(r"^([ \t]*expect[ \t]+)(?:race|undefined|deadlock)\b", re.MULTILINE)


def state_clean(text: str) -> str:
    """The text with ``expect clean`` where a line expects a finding."""
    return _EXPECTED.sub(r"\1clean", text)
