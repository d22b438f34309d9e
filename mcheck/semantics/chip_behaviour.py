"""Where a chip was seen to do otherwise than the documents say, or to do what they leave open (docs/hardware.md)."""

from __future__ import annotations

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What copies do in the places where documents and chips differ.

    ``pads_stores``: a tensor store or reduction writes the whole 16-byte unit in which the tensor ends along
    dimension 0, not only the elements inside. ``flushes_f32``: addition of f32 by ``cp.reduce.async.bulk`` and its
    tensor form takes and gives subnormal numbers as zeros of their sign (PTX ISA 9.0 section 9.7.9.25.4.2; 9.4
    preserves them).
    """

    name: str
    pads_stores: bool = False
    flushes_f32: bool = True


DOCUMENTED = Behaviour("documents")
SM_90 = Behaviour("sm_90", pads_stores=True, flushes_f32=False)
_BY_NAME = {b.name: b for b in (DOCUMENTED, SM_90)}
NAMES = tuple(_BY_NAME)


def behaviour(name: str) -> Behaviour:
    """The behaviour called ``name``; raises ``InputError``."""
    found = _BY_NAME.get(name)
    if found is None:
        raise InputError(f"unknown behaviour {name!r}", expected=", ".join(NAMES))
    return found
