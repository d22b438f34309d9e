"""Links to a playground that contain a program: its deflated text in the URL fragment, which no server sees."""

from __future__ import annotations

import base64
import zlib

RAW = -15
"""zlib's window bits for deflate without a header, the ``deflate-raw`` of browsers."""


def encode_fragment(text: str) -> str:
    """The URL fragment ``t=…`` that makes the playground open a text."""
    packer = zlib.compressobj(9, zlib.DEFLATED, RAW)
    data = packer.compress(text.encode()) + packer.flush()
    return "t=" + base64.urlsafe_b64encode(data).decode().rstrip("=")


def playground_link(playground: str, root: str, text: str = "") -> str:
    """The address of the playground, with or without a program, relative to a page whose site starts at ``root``."""
    base = playground if "//" in playground or playground.startswith("/") else root + playground
    page = base if base.endswith(".html") else base.rstrip("/") + "/index.html"
    return f"{page}#{encode_fragment(text)}" if text else page
