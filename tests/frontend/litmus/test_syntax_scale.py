"""Reading costs as much as there is to read: blanks, comments and repetition of any kind, in any place."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

import pytest

from mcheck.base.errors import McheckError
from mcheck.frontend.litmus import parse
from tests.effort import effort

BLOCKS = """\
PTX t
"doc"
{ .global .u32 x = 1; }
const N = 2;
P@cta 0 { L: st.weak.u32 [x], N; if (r0 == 1) { bra L; } }
locations [x;]
exists (P:r0 == 1 /\\ x == 2)
expect fail
"""
TABLE = """\
PTX t
{ x=0; P0:r1=1; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
 st.weak x, 1   | L: ld.weak r0, x ;
                | bra L ;
exists (P1:r0 == 1)
"""
SIZE = 200_000
SECONDS = 5.0
"""Ten times what the longest takes, and more; what is quadratic in so many characters takes minutes at least."""


def seconds(text: str) -> float:
    def read() -> None:
        with suppress(McheckError):
            parse(text, "t.litmus")

    return effort(read, SECONDS)


def gaps(text: str) -> list[int]:
    """The places between words, the ends included."""
    return [0, *(match.end() for match in re.finditer(r"\s+|(?<=[;{}|])", text)), len(text)]


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("form", [BLOCKS, TABLE], ids=["blocks", "table"])
@pytest.mark.parametrize("filling", [" ", "\n", "// xxxxxxxxxxxxxxxxxxxxxxxxx\n", "(* x *)"], ids=repr)
def test_blanks_and_comments_cost_their_length(form: str, filling: str) -> None:
    fill = filling * (SIZE // len(filling))
    for gap in gaps(form):
        text = f"{form[:gap]}\n{fill}\n{form[gap:]}"
        assert seconds(text) < SECONDS, form[max(gap - 20, 0) : gap]


REPEATED: dict[str, Callable[[int], str]] = {
    "unclosed <<": lambda n: TABLE.replace("| L:", "<< " * n + "| L:"),
    "<< >>": lambda n: TABLE.replace("| L:", "<< x >> " * n + "| L:"),
    "rows without an end": lambda n: TABLE.partition("exists")[0] + " x | y " * n,
    "braces": lambda n: "PTX t\n" + "{" * n,
    "quotes": lambda n: "PTX t\n" + '"' * n,
    "words of the header": lambda n: BLOCKS.replace('"doc"', "model xmodel " * n + "!"),
    "a long name": lambda n: BLOCKS.replace("[x]", f"[{'y' * n}]"),
    "a long opcode": lambda n: BLOCKS.replace("st.weak", "st" + ".weak" * n),
    "a long number": lambda n: BLOCKS.replace("N = 2", "N = " + "1" * n),
    "parentheses": lambda n: BLOCKS.replace("N = 2", "N = " + "(" * n),
    "conditions": lambda n: BLOCKS.replace("x == 2", "x == 2" + " /\\ x == 2" * (n // 10)),
}


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("name", REPEATED)
def test_repetition_costs_its_length(name: str) -> None:
    assert seconds(REPEATED[name](SIZE)) < SECONDS
