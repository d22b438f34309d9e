"""Tensor maps as values: the 128 opaque bytes of a map object stand for its fields.

A map's bytes hold a number that names its fields, so that a map can be replaced field by field, copied through shared
memory and
published like any other data, and a tensor copy uses the fields of the map that it reads.
"""

from __future__ import annotations

from mcheck.ir.memory import TensorMapSpec
from mcheck.semantics.tensor_map import replace_field

MAP_SIZE = 128
_MARK = 0x70616D << 64
_BLANK = TensorMapSpec(
    global_address=0, elemtype="u8", rank=1, global_dim=(1,), global_stride=(), element_stride=(1,), box_dim=(1,)
)  # fmt: skip
"""Zeros: every code is that of the first choice."""
_specs: dict[int, TensorMapSpec] = {}
"""By the number that names them. It is made of the fields alone: reports show it, and say the same in every process."""


def encode(spec: TensorMapSpec) -> int:
    """The contents of an object with these fields, as an integer of 128 bytes."""
    from hashlib import blake2b  # it loads OpenSSL

    number = int.from_bytes(blake2b(repr(spec).encode(), digest_size=8).digest(), "little")
    assert _specs.setdefault(number, spec) == spec, "two maps of one name"
    return _MARK | number


def decode(contents: int) -> TensorMapSpec | None:
    """The fields of an object with these contents, ``None`` if they are no tensor map."""
    return _specs.get(contents ^ _MARK)


def replace_map_field(field_name: str, contents: int, value: int, ordinal: int | None) -> int:
    """The contents after ``tensormap.replace``; what is no tensor map stays as it is, but for 128 bytes of zeros, of
    which Triton makes its maps field by field. Raises ``Misuse``.
    """
    spec = _BLANK if contents == 0 else decode(contents)
    return contents if spec is None else encode(replace_field(spec, field_name, value, ordinal))
