"""Warpgroup matrix multiply-accumulate as an asynchronous reader of shared memory (PTX ISA 9.7.15).

A shared-memory descriptor is written as the byte range that it describes, ``[a, 8192]``. What is computed is not
modelled: the accumulators are opaque.
"""

from __future__ import annotations

from mcheck.ir.expr import Expr
from mcheck.ir.ops import Commit, Op, WaitGroup, Wgmma, WgmmaFence
from mcheck.isa.families.common import address, value
from mcheck.isa.instruction import Address, Scalar
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Rule, Slot, Variant

_TARGETS = ("sm_90a",)
_SYNC = Slot("sync", ("sync",))
_ALIGNED = Slot("aligned", ("aligned",))


def _shapes(k: int) -> tuple[str, ...]:
    return tuple(f"m64n{n}k{k}" for n in range(8, 257, 8))


_BYTE_SHAPES = tuple(f"m64n{n}k{{}}" for n in (8, 16, 24, *range(32, 257, 16)))


def _types(name: str, *values: str) -> Slot:
    return Slot(name, values, kind="type")


_KINDS: tuple[tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[Slot, ...]], ...] = (
    ("f16", _shapes(16), ("f16", "f32"), ("f16",), ()),
    ("bf16", _shapes(16), ("f32",), ("bf16",), ()),
    ("tf32", _shapes(8), ("f32",), ("tf32",), ()),
    ("f8", _shapes(32), ("f16", "f32"), ("e4m3", "e5m2"), ()),
    (
        "integer",
        tuple(shape.format(32) for shape in _BYTE_SHAPES),
        ("s32",),
        ("s8", "u8"),
        (Slot("satfinite", ("satfinite",), optional=True),),
    ),
    (
        "bit",
        tuple(shape.format(256) for shape in _BYTE_SHAPES),
        ("s32",),
        ("b1",),
        (Slot("op", ("and",)), Slot("popc", ("popc",))),
    ),
)


def _mma(match: Match) -> Op:
    reads: list[tuple[Expr, Expr]] = []
    for name in ("a", "b"):
        operand = match.args[name]
        if isinstance(operand, Address):
            size = operand.items[1]
            assert isinstance(size, Scalar)
            reads.append((address(operand), size.expr))
    return Wgmma(reads=tuple(reads), **match.common)


_SCALE_D = Arg("scale-d", "pred", values=(0, 1), optional=True)
_SCALES = tuple(Arg(name, "imm", values=(1, -1), optional=True) for name in ("imm-scale-a", "imm-scale-b"))
_TRANS_A, _TRANS_B = (Arg(name, "imm", values=(0, 1), optional=True) for name in ("imm-trans-a", "imm-trans-b"))


def _trailing(name: str, a_in_memory: bool) -> tuple[Arg, ...]:
    """What may follow the matrices: only 16-bit floats in shared memory can be transposed."""
    if name in ("integer", "bit"):
        return (_SCALE_D,)
    if name in ("f16", "bf16"):
        return (_SCALE_D, *_SCALES, *((_TRANS_A,) if a_in_memory else ()), _TRANS_B)
    return (_SCALE_D, *_SCALES)


def _variants() -> tuple[Variant, ...]:
    made = []
    for name, shapes, results, inputs, rest in _KINDS:
        same = len(inputs) == 1
        slots = (
            _SYNC,
            _ALIGNED,
            Slot("shape", shapes),
            _types("dtype", *results),
            _types("atype", *inputs),
            _types("btype", *inputs),
            *rest,
        )
        rules = (Rule(lambda q: q["atype"] == q["btype"], "btype", "both inputs have one type"),) if same else ()
        for a in (Arg("a", "range"), Arg("a", "list")):
            args = (
                Arg("d", "list", written=True, read=True),
                a,
                Arg("b", "range"),
                *_trailing(name, a.kind == "range"),
            )
            made.append(Variant(name=name, slots=slots, args=args, rules=rules, lower=_mma, completion="wgmma group"))
    return tuple(made)


def _fence(match: Match) -> Op:
    return WgmmaFence(**match.common)


def _commit(match: Match) -> Op:
    return Commit(family="wgmma", **match.common)


def _wait(match: Match) -> Op:
    return WaitGroup(family="wgmma", pending=value(match.args["N"]), **match.common)


FAMILIES = (
    Family(
        name="wgmma.mma_async",
        kind=Kind.WGMMA,
        section="9.7.15.5.2",
        title="matrix multiply-accumulate over shared memory",
        ptx="8.0",
        needs=_TARGETS,
        proxy="async",
        variants=_variants(),
        undefined=("the shared memory modified before completion",),
    ),
    Family(
        name="wgmma.fence",
        kind=Kind.WGMMA_FENCE,
        section="9.7.15.7.1",
        title="order register and shared memory accesses before a later wgmma.mma_async",
        ptx="8.0",
        needs=_TARGETS,
        variants=(Variant(slots=(_SYNC, _ALIGNED), lower=_fence),),
    ),
    Family(
        name="wgmma.commit_group",
        kind=Kind.WGMMA_COMMIT,
        section="9.7.15.7.2",
        title="close a group of wgmma.mma_async",
        ptx="8.0",
        needs=_TARGETS,
        variants=(Variant(slots=(_SYNC, _ALIGNED), lower=_commit),),
    ),
    Family(
        name="wgmma.wait_group",
        kind=Kind.WGMMA_WAIT,
        section="9.7.15.7.3",
        title="wait until at most N wgmma groups are pending",
        ptx="8.0",
        needs=_TARGETS,
        variants=(Variant(slots=(_SYNC, _ALIGNED), args=(Arg("N", "imm", low=0, high=7),), lower=_wait),),
    ),
)
