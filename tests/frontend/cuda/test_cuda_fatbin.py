"""PTX in fat binaries, as text, and compressed as CUDA 11 (LZ4) and CUDA 13 (zstd) do it."""

from __future__ import annotations

import ctypes.util
import struct
from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.frontend.cuda.fatbin import main, read_modules

TEXT = ".version 9.0\n.target sm_90a\n.address_size 64\n" + ".visible .entry kernel() { ret; }\n" * 3


def entry(payload: bytes, *, kind: int = 1, arch: int = 90, flags: int = 0x11, size: int = 0) -> bytes:
    padded = payload + bytes(-len(payload) % 8)
    stored = len(payload) if size else 0
    return (
        struct.pack("<HHIQIIIIIIQQQ", kind, 0x101, 64, len(padded), stored, 0, 0, arch, 64, 0, flags, 0, size) + padded
    )


def fatbin(*entries: bytes) -> bytes:
    whole = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(whole)) + whole


def texts(data: bytes) -> list[str]:
    return [module.text for module in read_modules(data)]


def test_the_newest_module_of_each_fat_binary() -> None:
    older, newest = entry(b"older", arch=80), entry(TEXT.encode() + b"\0")
    specific = entry(b"specific", flags=0x100011)
    assert texts(b"elf" + fatbin(entry(b"code", kind=2, arch=120), older, newest)) == [TEXT]
    assert texts(fatbin(older) + b"more" + fatbin(newest)) == ["older", TEXT]
    assert texts(fatbin(specific, entry(b"plain"))) == ["specific"]
    assert texts(fatbin(entry(b"code", kind=2))) == []


def lz4_block(text: bytes) -> bytes:
    """Literals up to a repetition of 34 bytes, which copies of what is there follow: as long as it takes."""
    once = len(text) - 2 * 34
    literals, copied = text[:once], 2 * 34
    head = bytes([0xF0 | 15, once - 15]) if once >= 15 else bytes([once << 4 | 15])
    return head + literals + struct.pack("<H", 34) + bytes([copied - 4 - 15])


def test_lz4() -> None:
    packed = lz4_block(TEXT.encode())
    assert len(packed) < len(TEXT)
    assert texts(fatbin(entry(packed, flags=0x2011, size=len(TEXT)))) == [TEXT]
    with pytest.raises(InputError, match="damaged"):
        texts(fatbin(entry(packed[:-1], flags=0x2011, size=len(TEXT))))


def zstd(text: bytes) -> bytes:
    """A frame of one block that is not compressed (RFC 8878, 3.1.1), as any decoder reads."""
    block = len(text) << 3 | 1
    return struct.pack("<IBI", 0xFD2FB528, 0xA0, len(text)) + struct.pack("<I", block)[:3] + text


@pytest.mark.skipif(ctypes.util.find_library("zstd") is None, reason="no libzstd")
def test_zstd() -> None:
    packed = zstd(TEXT.encode())
    assert texts(fatbin(entry(packed, flags=0x8011, size=len(TEXT)))) == [TEXT]
    with pytest.raises(InputError, match="damaged"):
        texts(fatbin(entry(packed[:-8], flags=0x8011, size=len(TEXT))))


def test_a_cut_file_ends_the_search() -> None:
    whole = fatbin(entry(TEXT.encode()))
    for end in range(0, len(whole), 7):
        assert texts(whole[:end]) in ([], [TEXT])


def test_modules_are_written_to_files(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(fatbin(entry(TEXT.encode() + b'\t.file\t1 "/a/b/some ring.cu"\n')))
    assert main([str(program), str(tmp_path)]) == 0
    (found,) = tmp_path.glob("*.ptx")
    assert found.name.startswith("some_ring-")
    assert found.read_text(encoding="utf-8").startswith(TEXT)
    program.write_bytes(TEXT.encode() + b"\0\0")
    assert main([str(program), str(tmp_path)]) == 0
    assert (sum(1 for _ in tmp_path.glob("module-*.ptx"))) == 1
    program.write_bytes(b"nothing")
    assert main([str(program), str(tmp_path)]) == 2
