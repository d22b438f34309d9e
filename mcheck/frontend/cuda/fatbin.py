"""PTX in fat binaries: what nvcc puts into a program beside the machine code, compressed or not.

``python -m mcheck.frontend.cuda.fatbin FILE FOLDER`` writes it to files, for the recorder of launches. The format is
that of CUDA 11 to 13: a header, then entries of PTX or machine code, each with a header of its own.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass

MAGIC: Final = struct.pack("<I", 0xBA55ED50)
_HEADER: Final = struct.Struct("<IHHQ")
_ENTRY: Final = struct.Struct("<HHIQIIIIIIQQQ")
_PTX: Final = 1
_LZ4: Final = 0x2000
_ZSTD: Final = 0x8000
_SPECIFIC: Final = 0x100000
"""The flag of a target with features of its own (sm_90a)."""
MOST_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class EmbeddedModule:
    """A module of a fat binary: the architecture of its target (90), and its text."""

    arch: int
    text: str


def read_modules(data: bytes) -> Iterator[EmbeddedModule]:
    """The modules of all fat binaries in ``data``, of each the one for the newest target; raises ``InputError``."""
    at = data.find(MAGIC)
    while at >= 0:
        if at + _HEADER.size > len(data):
            return
        _, _, head, size = _HEADER.unpack_from(data, at)
        end = min(at + head + size, len(data))
        entries = list(_entries(data, at + head, end))
        found = max(entries, key=lambda entry: (entry[0], entry[2] & _SPECIFIC), default=None)
        if found is not None:
            yield EmbeddedModule(found[0], _text(*found[1:]))
        at = data.find(MAGIC, max(end, at + 1))


def _entries(data: bytes, at: int, end: int) -> Iterator[tuple[int, bytes, int, int]]:
    """The entries with PTX: the architecture, the payload, its flags, its size when it is decompressed."""
    while at + _ENTRY.size <= end:
        kind, _, head, padded, payload, _, _, arch, _, _, flags, _, size = _ENTRY.unpack_from(data, at)
        if head < _ENTRY.size or at + head + padded > end:
            return
        if kind == _PTX:
            yield arch, data[at + head : at + head + (payload or padded)], flags, size
        at += head + padded


def _text(payload: bytes, flags: int, size: int) -> str:
    if size > MOST_BYTES:
        raise InputError(f"a module of {size} bytes is too large")
    if flags & _ZSTD:
        payload = _unpack_zstd(payload, size)
    elif flags & _LZ4:
        payload = _unpack_lz4(payload, size)
    return payload.rstrip(b"\0").decode("utf-8", "replace")


def _unpack_lz4(data: bytes, size: int) -> bytes:
    """A block of LZ4: literals, and copies of what is already there."""
    out = bytearray()
    at = 0
    try:
        while at < len(data) and len(out) < size:
            token, at = data[at], at + 1
            count, at = _lz4_length(data, at, token >> 4)
            out += data[at : at + count]
            at += count
            if at + 2 > len(data) or len(out) >= size:
                break
            back = data[at] | data[at + 1] << 8
            count, at = _lz4_length(data, at + 2, token & 15)
            start = len(out) - back
            if back == 0 or start < 0:
                break
            for k in range(count + 4):
                out.append(out[start + k])
    except IndexError:
        pass
    if len(out) < size:
        raise InputError("a module of the program is damaged")
    return bytes(out[:size])


def _lz4_length(data: bytes, at: int, nibble: int) -> tuple[int, int]:
    count = nibble
    while nibble == 15:
        count, more, at = count + data[at], data[at], at + 1
        if more != 255:
            break
    return count, at


def _unpack_zstd(data: bytes, size: int) -> bytes:
    """By the library of the system: Python has one of its own from 3.14 on."""
    name = ctypes.util.find_library("zstd") or "libzstd.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        hint = "link the program anew with nvcc -no-compress, or install libzstd (apt install libzstd1)"
        raise InputError("the PTX of the program is compressed, and there is no libzstd", hint=hint) from None
    unpack = library.ZSTD_decompress
    unpack.restype = ctypes.c_size_t
    unpack.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    out = ctypes.create_string_buffer(size)
    if unpack(ctypes.cast(out, ctypes.c_void_p), size, data, len(data)) != size:
        raise InputError("a module of the program is damaged")
    return out.raw


def write_modules(data: bytes, folder: Path) -> list[Path]:
    """Write each module of ``data`` to a file named after its source, and after its text; text that is a module already
    stays as it is.
    """
    texts = [module.text for module in read_modules(data)]
    if not texts and b".version" in data[:4096]:
        texts = [data.rstrip(b"\0").decode("utf-8", "replace")]
    return [_write(text, folder) for text in texts]


def _write(text: str, folder: Path) -> Path:
    source = re.search(r'^\s*\.file\s+1\s+"([^"\n]+)"', text, re.MULTILINE)
    stem = re.sub(r"\W", "_", PurePosixPath(source[1]).stem) if source else "module"
    path = folder / f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.ptx"
    path.write_text(text, encoding="utf-8")
    return path


def main(arguments: list[str]) -> int:
    """Exit status: 0 if the modules were written, 2 if not."""
    try:
        file, folder = arguments
        written = write_modules(Path(file).read_bytes(), Path(folder))
    except (InputError, OSError, ValueError) as error:
        sys.stderr.write(f"recorder: {error}\n")
        return 2
    return 0 if written else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
