"""The examples of the manual page are litmus tests, and its limits are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from mcheck.frontend.litmus import codes, expressions, parse, placement, source, unroll, variables

PAGE = Path(__file__).parents[3] / "docs" / "litmus-format.md"


def test_examples() -> None:
    examples = re.findall(r"```litmus\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [parse(text, "page.litmus").dialect for text in examples] == [True, False]


def test_limits() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    for stated in (
        f"{placement.MAX_THREADS:,} threads",
        f"{unroll.MAX_OPERATIONS:,} operations",
        f"{variables.MAX_BYTES >> 20} MiB of variables",
        f"{expressions.MAX_DEPTH} nested parentheses",
        f"{expressions.MAX_OPERATORS} operators",
        f"{source.MAX_BYTES >> 20} MiB of text",
        f"`{max(codes.MESSAGES)}`",
    ):
        assert stated in text
