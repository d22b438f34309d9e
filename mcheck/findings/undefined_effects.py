"""Continuation of a thread after undefined behaviour, for every engine and for ``exec``.

Usually nothing is known of the effect, and the thread stops. It continues if the catalogue says so, because the effect
is known, and if the file suppresses the finding at the line (``mcheck.findings.suppress``), which would otherwise hide
later findings. If the effect cannot be determined, the thread stops nevertheless.
"""

from __future__ import annotations

from mcheck.findings import catalogue
from mcheck.findings.suppress import is_suppressed
from mcheck.ir.ops import Op
from mcheck.ir.program import Program

MISUSE = "UB2"
"""The prefix of the codes about the state of an mbarrier."""

REPORTED_BESIDE_MISUSE = frozenset({"UB201"})
"""Flags about the past of an operation, which are also reported of one that is undefined for another reason. An object
whose initialisation is not published may not exist, whatever else is wrong with the operation (9.7.13.15.3).
"""


def accepts_misuse(program: Program, op: Op) -> bool:
    """Whether the file suppresses some misuse of mbarriers at an operation."""
    return any(
        is_suppressed(program.source, program.path, entry.code, op.span)
        for entry in catalogue.all()
        if entry.code.startswith(MISUSE)
    )


def continues_after(program: Program, code: str, op: Op) -> bool:
    """Whether the thread continues after this finding at an operation."""
    return catalogue.get(code).continues or is_suppressed(program.source, program.path, code, op.span)
