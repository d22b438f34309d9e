"""Branches and exits (PTX ISA 9.7.12)."""

from __future__ import annotations

from mcheck.ir.expr import Name
from mcheck.ir.ops import Alu, Branch, Exit, GridWait, Op, Trap
from mcheck.isa.families.common import SM_90
from mcheck.isa.instruction import Scalar
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Slot, Variant

_UNI = Slot("uni", ("uni",), optional=True)


def label(match: Match) -> str:
    """The name of the label operand."""
    operand = match.args["label"]
    assert isinstance(operand, Scalar)
    assert isinstance(operand.expr, Name)
    return operand.expr.name


def _branch(match: Match) -> Op:
    return Branch(target=label(match), **match.common)


def _exit(match: Match) -> Op:
    return Exit(**match.common)


def _trap(match: Match) -> Op:
    return Trap(**match.common)


def _grid_wait(match: Match) -> Op:
    return GridWait(**match.common)


def _nothing(match: Match) -> Op:
    return Alu(op="nop", type="b32", dsts=(), srcs=(), **match.common)


FAMILIES = (
    Family(
        name="bra",
        kind=Kind.BRANCH,
        section="9.7.12.3",
        title="branch",
        variants=(Variant(slots=(_UNI,), args=(Arg("label", "label"),), lower=_branch),),
    ),
    Family(
        name="ret",
        kind=Kind.RETURN,
        section="9.7.12.6",
        title="return",
        variants=(Variant(slots=(_UNI,), lower=_exit),),
    ),
    Family(name="exit", kind=Kind.EXIT, section="9.7.12.7", title="end the thread", variants=(Variant(lower=_exit),)),
    Family(
        name="setmaxnreg",
        kind=Kind.REGISTER_COUNT,
        section="9.7.19.5",
        title="change the registers of a warp; no effect on memory",
        ptx="8.0",
        needs=("sm_90a", "sm_100f", "sm_110f", "sm_120f"),
        variants=(
            Variant(
                slots=(
                    Slot("action", ("inc", "dec"), kind="name"),
                    Slot("sync", ("sync",)),
                    Slot("aligned", ("aligned",)),
                    Slot("type", ("u32",), kind="type"),
                ),
                args=(Arg("count", "imm", values=tuple(range(24, 257, 8))),),
                lower=_nothing,
            ),
        ),
    ),
    Family(
        name="griddepcontrol",
        kind=Kind.GRID_WAIT,
        section="9.7.13.13",
        title="control of the grids in front of this one and behind it in a stream",
        ptx="7.8",
        needs=SM_90,
        variants=(
            Variant(name="wait", slots=(Slot("action", ("wait",), kind="name"),), lower=_grid_wait),
            Variant(
                name="launch of dependents",
                kind=Kind.GRID_TRIGGER,
                slots=(Slot("action", ("launch_dependents",), kind="name"),),
                lower=_nothing,
            ),
        ),
    ),
    Family(name="trap", kind=Kind.TRAP, section="9.7.19.4", title="abort the grid", variants=(Variant(lower=_trap),)),
)
