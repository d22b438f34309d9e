"""``ldmatrix`` and ``stmatrix``: rows of 16 bytes of shared memory, each at the address that a lane gives (PTX ISA
9.7.14.5.15, 9.7.14.5.16).

Which register gets which element is not modelled.
"""

from __future__ import annotations

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
_B16, _B8 = Slot("type", ("b16",), kind="type"), Slot("type", ("b8",), kind="type")
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


def _shape(name: str) -> Slot:
    return Slot("shape", (name,))


_UNDEFINED = ("an address of a row that is not a multiple of 16", "not all threads of the warp execute it")

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
            Variant(
                name="of 16-bit elements",
                slots=(*_SYNC, _shape("m8n8"), _NUM, Slot("trans", ("trans",), optional=True), _SPACE, _B16),
                args=_LOADED,
                lower=_load,
            ),
            Variant(
                name="of bytes",
                slots=(*_SYNC, _shape("m16n16"), _NUM, _TRANS, _SPACE, _B8),
                args=_LOADED,
                rules=_UP_TO_2,
                lower=_load,
                needs=_BYTES,
                ptx="8.6",
            ),
            Variant(
                name="of padded elements",
                slots=(*_SYNC, _shape("m8n16"), _NUM, _SPACE, *_PADDED),
                args=_LOADED,
                lower=_load,
                needs=_BYTES,
                ptx="8.6",
            ),
            Variant(
                name="of padded elements, transposed",
                slots=(*_SYNC, _shape("m16n16"), _NUM, _TRANS, _SPACE, *_PADDED),
                args=_LOADED,
                rules=_UP_TO_2,
                lower=_load,
                needs=_BYTES,
                ptx="8.6",
            ),
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
        variants=(
            Variant(
                name="of 16-bit elements",
                slots=(*_SYNC, _shape("m8n8"), _NUM, Slot("trans", ("trans",), optional=True), _SPACE, _B16),
                args=_STORED,
                lower=_store,
            ),
            Variant(
                name="of bytes",
                slots=(*_SYNC, _shape("m16n8"), _NUM, _TRANS, _SPACE, _B8),
                args=_STORED,
                lower=_store,
                needs=_BYTES,
                ptx="8.6",
            ),
        ),
    ),
)
