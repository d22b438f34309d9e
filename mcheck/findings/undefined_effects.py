"""What a thread does after undefined behaviour, for every engine and for ``exec``.

Mostly nothing is known of what follows, and the thread stops. It goes on where the catalogue says so, for the effect is
known, and where the file accepts the finding at the line (``mcheck.findings.suppress``): otherwise what it accepts
would hide what comes later. Where no effect can be told the thread stops all the same.
"""

from __future__ import annotations

from mcheck.findings import catalogue
from mcheck.findings.suppress import is_suppressed
from mcheck.ir.ops import Op
from mcheck.ir.program import Program

MISUSE = "UB2"
"""How the codes begin that tell of an mbarrier's states."""

OF_THE_MISUSED = frozenset({"UB201"})
"""Flags about what lies before an operation: they are told of one that is undefined for another reason, too. An object
whose initialisation is not published may not be there, whatever else is wrong with the operation (9.7.13.15.3).
"""


def accepts_misuse(program: Program, op: Op) -> bool:
    """Whether the file accepts some misuse of mbarriers at an operation."""
    return any(
        is_suppressed(program.source, program.path, entry.code, op.span)
        for entry in catalogue.all()
        if entry.code.startswith(MISUSE)
    )


def continues_after(program: Program, code: str, op: Op) -> bool:
    """Whether the thread goes on after this finding at an operation."""
    return catalogue.get(code).goes_on or is_suppressed(program.source, program.path, code, op.span)
