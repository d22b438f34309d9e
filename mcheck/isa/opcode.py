"""The opcode of an instruction as the instruction table reads it: the kind, which operands are written, the qualifiers.

It is found without the operands, and for illegal instructions too: for a name with qualifiers that no form of the
instruction has, what holds of any form.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import field
from functools import lru_cache

from mcheck.base.records import dataclass
from mcheck.isa.families import ptx_families
from mcheck.isa.kinds import COMPUTATIONS, Kind
from mcheck.isa.matcher import match_qualifiers
from mcheck.isa.schema import IN_BRACKETS, Arg, Family, Qualifiers, Variant
from mcheck.isa.unmodelled import ROWS, Unmodelled

GENERIC = "generic"
_SPACES = frozenset(("const", "global", "local", "param", "shared"))
_SCOPES = {"cta": "cta", "cluster": "cluster", "gpu": "gpu", "gl": "gpu", "sys": "sys"}
"""The scopes, with the levels of ``membar``, which is ``fence.sc`` (PTX ISA 9.7.13.4)."""
_ORDERS = frozenset(("weak", "relaxed", "acquire", "release", "acq_rel", "sc", "volatile", "mmio"))
_STRONG = _ORDERS - {"weak"}
RELEASING = frozenset(("release", "acq_rel", "sc"))
_LENGTHS = {"v2": 2, "v4": 4, "v8": 8}
READONLY = "proxy::readonly"
"""The proxy of a load that is written behind its type (PTX ISA 9.4)."""


@dataclass(frozen=True, slots=True)
class Opcode:
    """``parts`` is the name split at its dots; everything else follows from it.

    ``spaces`` are the state spaces in order, ``orders`` the memory orders, ``volatile`` and ``mmio`` among them.
    ``written`` are the operands whose registers the instruction writes, if they are registers; ``updated`` are those of
    them that it reads as well. ``addresses`` are the operands that are addresses in every form. ``is_modelled``: the
    instruction has a row in the table with its operands.
    """

    parts: tuple[str, ...]
    kind: Kind = field(compare=False)
    is_modelled: bool = field(compare=False)
    written: tuple[int, ...] = field(compare=False)
    updated: tuple[int, ...] = field(compare=False)
    addresses: tuple[int, ...] = field(compare=False)
    spaces: tuple[str, ...] = field(compare=False)
    orders: tuple[str, ...] = field(compare=False)
    only_computes: bool = field(compare=False)

    @property
    def text(self) -> str:
        """The opcode as it is written."""
        return ".".join(self.parts)

    @property
    def name(self) -> str:
        """The first part."""
        return self.parts[0]

    @property
    def mode(self) -> str:
        """The second part: the comparison of ``setp``, the half of the product that ``mul`` gives."""
        return self.parts[1]

    @property
    def type(self) -> str:
        """The last part: the type, of the sources if there are two."""
        return self.parts[-1]

    @property
    def space(self) -> str:
        """The first state space without ``::cta`` and the like; ``generic`` if none is written."""
        return self.spaces[0].partition("::")[0] if self.spaces else GENERIC

    @property
    def is_strong(self) -> bool:
        """Is a memory order other than ``weak`` written?"""
        return not _STRONG.isdisjoint(self.orders)

    @property
    def scope(self) -> str | None:
        """The scope, if one is written."""
        return next((_SCOPES[part] for part in self.parts[1:] if part in _SCOPES), None)

    @property
    def vector(self) -> int:
        """The number of elements of ``.v2``, ``.v4``, ``.v8``, else 1."""
        return next((_LENGTHS[part] for part in self.parts if part in _LENGTHS), 1)

    def has(self, *qualifiers: str) -> bool:
        """Is one of these qualifiers written?"""
        return any(part in qualifiers for part in self.parts[1:])

    def choice(self, qualifiers: Collection[str]) -> str | None:
        """The first of these qualifiers that is written."""
        return next((part for part in self.parts[1:] if part in qualifiers), None)

    def prefixed(self, prefix: str) -> str | None:
        """The first qualifier that begins so."""
        return next((part for part in self.parts[1:] if part.startswith(prefix)), None)

    def without(self, *qualifiers: str) -> Opcode:
        """The opcode without these qualifiers."""
        return read_opcode(tuple(part for part in self.parts if part not in qualifiers))


@lru_cache(maxsize=16384)
def read_opcode(parts: tuple[str, ...]) -> Opcode:
    """Look up an opcode in the instruction table."""
    row = find_row(parts)
    kind, written, updated, addresses = Kind.UNKNOWN, {0}, set[int](), set[int]()
    if isinstance(row, Unmodelled):
        kind, written = row.kind, {0} if row.writes else set()
        addresses = set() if row.address is None else {row.address}
    elif row is not None:
        forms = _forms(parts, row)
        kinds = {variant.kind or row.kind for variant, _ in forms}
        kind = kinds.pop() if len(kinds) == 1 else row.kind
        written = _positions(forms, lambda arg: arg.is_written)
        updated = _positions(forms, lambda arg: arg.is_written and arg.is_read)
        addresses = _positions(forms, lambda arg: arg.kind in IN_BRACKETS)
        addresses -= _positions(forms, lambda arg: arg.kind not in IN_BRACKETS)
    return Opcode(
        parts=parts,
        kind=kind,
        is_modelled=isinstance(row, Family),
        written=tuple(sorted(written)),
        updated=tuple(sorted(updated)),
        addresses=tuple(sorted(addresses)),
        spaces=tuple(part for part in parts[1:] if part.partition("::")[0] in _SPACES),
        orders=("sc",) if parts[0] == "membar" else tuple(part for part in parts[1:] if part in _ORDERS),
        only_computes=kind in COMPUTATIONS,
    )


def find_row(parts: tuple[str, ...]) -> Family | Unmodelled | None:
    """The row of the table with the longest name that begins the opcode."""
    for length in range(min(len(parts), _LONGEST), 0, -1):
        found = _ROWS.get(parts[:length])
        if found is not None:
            return found
    return None


Forms = list[tuple[Variant, Qualifiers]]


def _forms(parts: tuple[str, ...], family: Family) -> Forms:
    """The variants that take the qualifiers, else all of them."""
    found: Forms = []
    for variant in family.variants:
        q = match_qualifiers(parts, family, variant)
        if isinstance(q, tuple):
            found.append((variant, q[0]))
    return found or [(variant, {}) for variant in family.variants]


def _positions(forms: Forms, test: Callable[[Arg], bool]) -> set[int]:
    """The operands for which the test holds in some form."""
    found = set[int]()
    for variant, q in forms:
        present = [arg for arg in variant.args if arg.when is None or not q or arg.when(q)]
        found |= {at for at, arg in enumerate(present) if test(arg)}
    return found


_ALL: tuple[Family | Unmodelled, ...] = (*ROWS, *ptx_families())
_ROWS = {tuple(row.name.split(".")): row for row in _ALL}
_LONGEST = max(map(len, _ROWS))
