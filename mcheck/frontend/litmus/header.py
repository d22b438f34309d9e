"""The parser of the header (``PTX name``, quoted lines, ``model``, ``target``); the choice of table or block form."""

from __future__ import annotations

import os
import re

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.source import Source
from mcheck.isa.targets import KNOWN

_FIRST = re.compile(r"\s*+(?:PTX|ptx)\b[ \t]*([A-Za-z0-9_.+-]*)", re.ASCII)
LANGUAGES = {
    "AARCH64": "Armv8", "ARM": "Armv7", "BPF": "BPF", "C": "C", "CPP": "C++", "JAVA": "Java", "LISA": "LISA",
    "LLVM": "LLVM", "MIPS": "MIPS", "OPENCL": "OpenCL", "PPC": "Power", "RISCV": "RISC-V", "VULKAN": "Vulkan",
    "X86": "x86", "X86_64": "x86-64",
}  # fmt: skip
"""The languages that herd and Dartagnan name in the first line of their tests."""
_OTHER = re.compile(rf"({'|'.join(LANGUAGES)})[ \t]+[A-Za-z0-9_.+-]+[ \t]*(?=[\n\"{{])", re.ASCII | re.IGNORECASE)
_PYTHON = re.compile(r"^[ \t]*(?:@(?:triton|gluon)\.jit|import triton\b|from triton\b)", re.MULTILINE)
_CUDA = re.compile(r"\b__(?:global|device|shared)__\b|^[ \t]*#include\b", re.MULTILINE)
_BRACE = re.compile(r'"[^"]*"|\{')
_BRACES = re.compile(r"[{}]")
_INCLUDE = re.compile(r'(\binclude[ \t]+)("[^"\n]*")')
_QUOTED = re.compile(r'"([^"]*)"')
_WORDS = re.compile(r"^[ \t]*(?:(?:model|target)[ \t]++[^\s{]++[ \t]*+)+$", re.MULTILINE)
_WORD = re.compile(r"(model|target)[ \t]+([^\s{]+)")
_TABLE = re.compile(r"\s*+;?\s*+(?=P?\d+\b)[^;{}]*+(?:;|\Z)", re.ASCII)
_BLOCKS = re.compile(r"\s*+;?\s*+(?:[A-Za-z_$][\w$]*+\s*+[@{]|const\b|def\b|include\b|\.reg\b)", re.ASCII)
_NOT_NEWLINE = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a file. ``body`` is the offset after the opening brace of the init block.

    ``words`` is the text up to there with everything blanked that is parsed here; the block form has further words,
    the table form ignores them.
    """

    source: Source
    name: str
    doc: tuple[str, ...]
    model: str | None
    model_span: Span | None
    target: str | None
    words: str
    body: int


def parse_header(source: Source) -> Header:
    """Parse everything up to the opening brace of the init block."""
    clean = source.clean
    if not clean or clean.isspace():
        raise problem("LIT002", source.span(0), expected="PTX and the name of the test")
    first = _FIRST.match(clean)
    if first is None:
        start = len(clean) - len(clean.lstrip())
        other = _OTHER.match(clean, start)
        if other is not None:
            language = LANGUAGES[other[1].upper()]
            hint = "mcheck checks PTX tests only; herd7 and Dartagnan support other languages"
            raise problem(
                "LIT086", source.span(start, len(other[1])), language=language, expected="PTX name", hint=hint
            )
        module = clean.startswith(".version", start)
        meant = "to check a PTX module, name the file .ptx" if module else _which_command(source)
        raise problem(
            "LIT006", source.span(start), expected="PTX name", hint=meant or "the first line is 'PTX' and a name"
        )
    brace = next((m for m in _BRACE.finditer(clean, first.end()) if m[0] == "{"), None)
    if brace is None:
        quote = clean.find('"', first.end())
        if quote >= 0 and clean.count('"', first.end()) % 2:
            raise problem("LIT009", source.span(clean.rfind('"')), expected='"')
        end = len(clean.rstrip())
        raise problem(
            "LIT007", source.span(end), expected="{ and the initial state", hint="write { } for an empty init block"
        )
    text = clean[first.end() : brace.start()]
    doc: tuple[str, ...] = ()
    if '"' in text:
        text = _INCLUDE.sub(lambda m: m[1] + " " * len(m[2]), text)  # its name is read where it is included
        doc = tuple(quoted.strip() for quoted in _QUOTED.findall(text))
        text = _QUOTED.sub(lambda m: _NOT_NEWLINE.sub(" ", m[0]), text)
    words: dict[str, str] = {}
    model_span = None
    for line in _WORDS.finditer(text):
        for word in _WORD.finditer(text, line.start(), line.end()):
            words[word[1]] = word[2]
            if word[1] == "model":
                model_span = source.span(first.end() + word.start(2), len(word[2]))
    target = words.get("target")
    if target is not None and target not in KNOWN:
        where = source.span(first.end() + text.index(target), len(target))
        raise problem("LIT083", where, found=target, expected="a target such as sm_90a", hint=suggest(target, KNOWN))
    if words:
        text = _WORDS.sub(lambda match: " " * len(match[0]), text)
    return Header(
        source=source,
        name=first[1] or os.path.splitext(os.path.basename(source.path))[0],
        doc=doc,
        model=words.get("model"),
        model_span=model_span,
        target=target,
        words=_NOT_NEWLINE.sub(" ", clean[: first.end()]) + text if text and not text.isspace() else "",
        body=brace.end(),
    )


def find_init_end(source: Source, start: int) -> int:
    """The offset of the brace that closes the init block."""
    depth = 1
    for match in _BRACES.finditer(source.clean, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    raise problem(
        "LIT012", source.span(max(len(source.clean.rstrip()) - 1, 0)), expected="} at the end of the init block"
    )


def is_table(source: Source, end: int) -> bool:
    """Whether the text after the init block is a table; raises ``InputError`` if it is neither a table nor roles."""
    if _TABLE.match(source.clean, end):
        return True
    if _BLOCKS.match(source.clean, end):
        return False
    rest = source.clean[end:]
    offset = end + len(rest) - len(rest.lstrip(" \t\n;"))
    raise problem(
        "LIT050",
        source.span(min(offset, max(len(source.clean.rstrip()) - 1, 0))),
        expected="a row such as 'P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;' or a role such as 'P0@cta 0 { … }'",
        hint=_which_command(source),
    )


def _which_command(source: Source) -> str | None:
    """What checks a source in another language that was taken for a litmus test."""
    if _PYTHON.search(source.text):
        return "this is Triton: pytest -p mcheck.triton FILE.py checks the kernels that a file or its tests launch"
    if _CUDA.search(source.text):
        return "this is CUDA C++: name the file .cu, and mcheck check compiles it and checks its kernels"
    return None


def strip_exec_comments(text: str) -> str:
    """``text`` with ``<< … >>`` blanked, which are comments in the table form."""
    parts: list[str] = []
    done = 0
    while (start := text.find("<<", done)) >= 0 and (end := text.find(">>", start + 2)) >= 0:
        parts += text[done:start], _NOT_NEWLINE.sub(" ", text[start : end + 2])
        done = end + 2
    return "".join((*parts, text[done:]))
