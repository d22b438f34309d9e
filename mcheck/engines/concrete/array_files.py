"""Loads and dumps the contents of objects: raw bytes, or NumPy arrays (``.npy``)."""

from __future__ import annotations

from io import BytesIO
from math import prod
from tokenize import TokenError
from typing import TYPE_CHECKING, BinaryIO

from mcheck.base.errors import InputError
from mcheck.engines.concrete.result import Execution, labels
from mcheck.ir.memory import Instance
from mcheck.ir.program import Program
from mcheck.semantics.memory import Memory, as_bytes

if TYPE_CHECKING:
    import numpy as np

_DAMAGE = (
    TokenError,
    ValueError,
    TypeError,
    LookupError,
    SyntaxError,
    EOFError,
    OverflowError,
    RecursionError,
    MemoryError,
)
"""Exceptions from reading a damaged header, which is a Python expression."""
_DTYPES = {"f16": "<f2", "f32": "<f4", "f64": "<f8"}


def pair(text: str, option: str) -> tuple[str, str]:
    """Splits ``name=file``."""
    name, equals, path = text.partition("=")
    if not equals or not name or not path:
        raise InputError(f"bad {option} {text!r}", expected="name=file")
    return name.strip(), path


def instances(program: Program, name: str) -> list[Instance]:
    """The instances of object ``name``, or the single one called ``name@rank``."""
    names = labels(program)
    found = [i for i in program.memory.instances if name in (i.object.name, names[i.base])]
    if not found:
        from difflib import get_close_matches

        known = sorted({i.object.name for i in program.memory.instances})
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the objects are {', '.join(known)}" if known else None
        raise InputError(f"there is no object {name!r} in {program.path}", hint=hint)
    if any(i.object.tensor_map for i in found):
        raise InputError(f"{name} is a tensor map; its bytes are opaque")
    return found


def load(program: Program, memory: Memory, name: str, path: str) -> None:
    """Fills object ``name`` from its start with the contents of the file at ``path``."""
    found = instances(program, name)
    room = min(instance.object.size for instance in found)
    data = _contents(path, room)
    if len(data) > room:
        raise InputError(f"{path} holds more than the {room} bytes of {name}")
    for instance in found:
        memory.load_object(instance, data)


def _contents(path: str, room: int) -> bytes:
    """The bytes in the file; at least ``room`` + 1 of them if it holds more."""
    try:
        with open(path, "rb") as file:
            return _array_in(file, path, room) if path.endswith(".npy") else file.read(room + 1)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def _array_in(file: BinaryIO, path: str, room: int) -> bytes:
    """The bytes of the array in a NumPy file. The header may claim any size, so it is read first, by itself."""
    from numpy import frombuffer
    from numpy.lib import format as npy

    try:
        version = npy.read_magic(file)
        header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if header is None:
            raise ValueError(f"version {version} of the format is not known")
        shape, by_columns, kind = header(file)
        if kind.hasobject:
            raise ValueError("it holds objects")
        if any(extent < 0 for extent in shape):
            raise ValueError("its shape is negative")
        size = prod(shape) * kind.itemsize
        data = file.read(min(size, room + 1))
        if size > room:
            return bytes(room + 1)
        if len(data) < size:
            raise ValueError(f"it is truncated: {len(data)} of {size} bytes")
        array = frombuffer(data, kind) if size else frombuffer(b"", "u1")
        return as_bytes(array.reshape(shape, order="F" if by_columns else "C") if size else array)
    except _DAMAGE as error:
        raise InputError(f"{path} is not an array of plain numbers: {str(error) or type(error).__name__}") from None


def dump(program: Program, execution: Execution, name: str, path: str) -> bytes:
    """The contents of the file to be written at ``path``: the final contents of object ``name``, with unknown bytes as
    zeros.
    """
    found = instances(program, name)
    if len(found) > 1:
        raise InputError(
            f"{name} has an instance in several CTAs", hint=f"name one: {', '.join(_labels(program, found))}"
        )
    instance = found[0]
    label = labels(program)[instance.base]
    data = next(o.data for o in execution.objects if o.label == label)
    if not path.endswith(".npy"):
        return data
    import numpy as np

    file = BytesIO()
    np.save(file, _array(instance, data))
    return file.getvalue()


def _labels(program: Program, found: list[Instance]) -> list[str]:
    names = labels(program)
    return [names[i.base] for i in found]


def _array(instance: Instance, data: bytes) -> np.ndarray:
    """The bytes as an array of the declared shape and element type."""
    import numpy as np

    elem = instance.object.elem
    size = instance.object.elem_size or 1
    dtype = _DTYPES.get(elem) or f"<{'i' if elem.startswith('s') else 'u'}{size}"
    if size not in (1, 2, 4, 8) or len(data) % size:
        dtype = "u1"
    array = np.frombuffer(data, dtype)
    dims = instance.object.dims
    return array.reshape(dims) if dims and np.prod(dims) == array.size else array
