"""``ldmatrix`` and ``stmatrix``: rows of 16 bytes of shared memory, each at the address that a lane gives (PTX ISA
9.7.14.5.15, 9.7.14.5.16).

Which register gets which element is not modelled.
"""

from __future__ import annotations

from mcheck.base.records import replace
from mcheck.ir.ops import Load, Op, Store
from mcheck.isa.families.common import address, one_of, registers, shared_space, values
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Qualifiers, Rule, Slot, Variant

ROW_WORDS = 4
"""Words of a row."""

_BYTES = ("sm_100f", "sm_110f", "sm_120f")
"""The targets of matrices of bytes."""

_SYNC = (Slot("sync", ("sync",)), Slot("aligned", ("aligned",)))
_NUM = Slot("num", ("x1", "x2", "x4"))
_TRANS = Slot("trans", ("trans",))
_SPACE = Slot("space", ("shared", "shared::cta"), optional=True, kind="space")
_PADDED = (
    Slot("dst_fmt", ("b8x16",), kind="type"),
    Slot("src_fmt", ("b6x16_p32", "b4x16_p64"), kind="type"),
)


def _registers(q: Qualifiers) -> int:
    return int(q["num"][1:]) * (2 if q["shape"] == "m16n16" else 1)


def _rows(q: Qualifiers) -> int:
    return int(q["num"][1:]) * (16 if q["shape"] == "m16n16" else 8)


def _load(match: Match) -> Op:
    found = registers(match.args["r"])
    return Load(
        dsts=(*found, *(None,) * (ROW_WORDS - len(found))),
        address=address(match.args["p"]),
        type="b32",
        space=shared_space(match.q),
        matrix_rows=_rows(match.q),
        **match.common,
    )


def _store(match: Match) -> Op:
    given = values(match.args["r"])
    return Store(
        srcs=(*given, *(given[-1],) * (ROW_WORDS - len(given))),
        address=address(match.args["p"]),
        type="b32",
        space=shared_space(match.q),
        matrix_rows=_rows(match.q),
        **match.common,
    )


_ADDRESS = Arg("p", "mem", space="$space", generic=("shared",))
_LOADED = (Arg("r", "dst", "b32", count=_registers), _ADDRESS)
_STORED = (_ADDRESS, Arg("r", "reg", "b32", count=_registers))
_UP_TO_2 = (Rule(one_of("num", "x1", "x2"), "num", "'.{num}' does not go with '.m16n16'", ".x1 or .x2"),)


_UNDEFINED = ("an address of a row that is not a multiple of 16", "not all threads of the warp execute it")


def _form(name: str, kind: Kind, shape: str, *elements: Slot, trans: Slot | None = None) -> Variant:
    """The form of a shape: that of 16-bit elements is older than the others."""
    loads, old = kind is Kind.MATRIX_LOAD, shape == "m8n8"
    transposed = () if trans is None else (trans,)
    return Variant(
        name=name,
        slots=(*_SYNC, Slot("shape", (shape,)), _NUM, *transposed, _SPACE, *elements),
        args=_LOADED if loads else _STORED,
        rules=_UP_TO_2 if shape == "m16n16" else (),
        lower=_load if loads else _store,
        needs=() if old else _BYTES,
        ptx="" if old else "8.6",
    )


def _forms(kind: Kind, bytes_shape: str) -> tuple[Variant, Variant]:
    """The forms of whole elements."""
    b16, b8 = (Slot("type", (name,), kind="type") for name in ("b16", "b8"))
    return (
        _form("of 16-bit elements", kind, "m8n8", b16, trans=replace(_TRANS, optional=True)),
        _form("of bytes", kind, bytes_shape, b8, trans=_TRANS),
    )


FAMILIES = (
    Family(
        name="ldmatrix",
        kind=Kind.MATRIX_LOAD,
        section="9.7.14.5.15",
        title="load matrices from shared memory, a row at each lane's address",
        ptx="6.5",
        needs=("sm_75",),
        undefined=_UNDEFINED,
        variants=(
            *_forms(Kind.MATRIX_LOAD, "m16n16"),
            _form("of padded elements", Kind.MATRIX_LOAD, "m8n16", *_PADDED),
            _form("of padded elements, transposed", Kind.MATRIX_LOAD, "m16n16", *_PADDED, trans=_TRANS),
        ),
    ),
    Family(
        name="stmatrix",
        kind=Kind.MATRIX_STORE,
        section="9.7.14.5.16",
        title="store matrices to shared memory, a row at each lane's address",
        ptx="7.8",
        needs=("sm_90",),
        undefined=_UNDEFINED,
        variants=_forms(Kind.MATRIX_STORE, "m16n8"),
    ),
)
