"""Links to a playground that hold a program: the text, deflated, in the part that no server sees."""

from __future__ import annotations

import base64
import zlib

RAW = -15
"""zlib's window bits for deflate without a header, as browsers' ``deflate-raw``."""


def fragment(text: str) -> str:
    """``t=…``, which the playground's page opens."""
    packer = zlib.compressobj(9, zlib.DEFLATED, RAW)
    data = packer.compress(text.encode()) + packer.flush()
    return "t=" + base64.urlsafe_b64encode(data).decode().rstrip("=")


def link(playground: str, root: str, text: str = "") -> str:
    """The playground's address in a page from which the site's start is at ``root``, with a program or without."""
    base = playground if "//" in playground or playground.startswith("/") else root + playground
    page = base if base.endswith(".html") else base.rstrip("/") + "/index.html"
    return f"{page}#{fragment(text)}" if text else page
