"""The folder of what mcheck keeps for its user from one call to the next."""

from __future__ import annotations

import os


def user_cache_folder(*parts: str) -> str:
    """The folder ``mcheck`` in that of the user's caches (``XDG_CACHE_HOME``), or a folder in it."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "mcheck", *parts)
