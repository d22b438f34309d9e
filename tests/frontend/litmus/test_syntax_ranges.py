"""A condition that compares with a value that the type does not have is warned of: it would never be equal."""

from __future__ import annotations

import pytest

from mcheck.frontend.litmus import parse

PROGRAM = """\
PTX t
{{ .global .u32 u[2]; .global .s32 s; .global .u8 b; x = 0; }}
P@cta 0 {{
  .reg .u16 h;
  ld.global.u32 r0, [u];
  ld.global.s32 r1, [s];
  ld.global.u8 r2, [b];
  add.u32 r2, r2, 300;
  mov.u16 h, 7;
}}
{condition}
"""


@pytest.mark.parametrize(
    ("atom", "warning"),
    [
        ("u[0] == -1", "u[0] is .u32 and ranges from 0 to 4294967295: it is never -1"),
        ("-1 == u[1]", "u[1] is .u32 and ranges from 0 to 4294967295: it is never -1"),
        ("u[0] == 0x100000000", "u[0] is .u32 and ranges from 0 to 4294967295: it is never 4294967296"),
        ("b == 256", "b is .u8 and ranges from 0 to 255: it is never 256"),
        ("s == 0xffffffff", "s is .s32 and ranges from -2147483648 to 2147483647: it is never 4294967295"),
        ("P:r0 == -1", "P:r0 is .u32 and ranges from 0 to 4294967295: it is never -1"),
        ("P:r1 != 0x80000000", "P:r1 is .s32 and ranges from -2147483648 to 2147483647: it is never 2147483648"),
        ("P:h == 65536", "P:h is .u16 and ranges from 0 to 65535: it is never 65536"),
    ],
)
@pytest.mark.parametrize("kind", ["exists", "~exists", "forall"])
def test_a_constant_outside_of_the_type_is_a_warning(kind: str, atom: str, warning: str) -> None:
    program = parse(PROGRAM.format(condition=f"{kind} ({atom} \\/ x == 0)"), "t.litmus")
    assert [message for message, _ in program.warnings] == [warning]
    (span,) = (span for _, span in program.warnings)
    assert (span.line if span else None) == 11


@pytest.mark.parametrize(
    "atom",
    ["u[0] == 0xffffffff", "s == -1", "b == 255", "P:r0 == 0", "P:r1 == -1", "P:r2 == 303", "P:h == 65535", "x == -1"],
)
def test_a_constant_of_the_type_is_none(atom: str) -> None:
    """Nor is what a register may hold by any of the writes to it."""
    assert parse(PROGRAM.format(condition=f"exists ({atom})"), "t.litmus").warnings == ()
