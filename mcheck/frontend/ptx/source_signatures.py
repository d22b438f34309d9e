"""The kernels of a CUDA C++ source: names and types of their parameters, as ``__global__`` declarations say them.

This is no parser of C++: a declaration that comes from a macro is not seen, and one that is ambiguous (overloads that
name their parameters differently) counts as unknown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Final

from mcheck.base.files import MEBIBYTE, is_regular_file
from mcheck.frontend.ptx.mangled_names import CppName, demangle
from mcheck.frontend.ptx.module import Function, Module, Signature, SourceParameter

SUFFIXES: Final = (".cu", ".cuh", ".h", ".hpp", ".hh", ".cpp", ".cc", ".cxx", ".inl")
LARGEST: Final = 4 * MEBIBYTE
_HIDDEN = re.compile(
    r"//(?:[^\n\\]|\\.)*|/\*.*?\*/|R\"([^()\s\\]{0,16})\(.*?\)\1\"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+'",
    re.DOTALL,
)
"""Comments, strings and characters."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_INTEGER_SUFFIX = re.compile(r"(?<=\d)u?l{0,2}(?=[,>])")
_ATTRIBUTES: Final = frozenset({
    "__launch_bounds__", "__cluster_dims__", "__block_size__", "__maxnreg__", "__attribute__", "__declspec",
    "__align__", "alignas", "decltype", "noexcept",
})  # fmt: skip
"""Words before the name of a kernel that have parentheses of their own."""
_OPEN: Final = {"(": ")", "[": "]", "{": "}", "<": ">"}


def read_signatures(text: str) -> tuple[Signature, ...]:
    """The kernels that a source declares or defines, in its order."""
    clean = _HIDDEN.sub(_blank, text)
    return tuple(_signatures(clean))


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _signatures(clean: str) -> Iterator[Signature]:
    for found in re.finditer(r"\b__global__\b", clean):
        head = _head(clean, found.end())
        if head is None:
            continue
        name, start = head
        end = _closing(clean, start)
        if end is not None:
            parameters = _parameters(clean[start + 1 : end])
            yield Signature(name, parameters, clean.count("\n", 0, found.start()) + 1)


def _head(clean: str, at: int) -> tuple[str, int] | None:
    """The name of the kernel declared at ``at``, and where its parameters begin."""
    while (opening := re.compile(r"[(;{=]").search(clean, at)) is not None and opening[0] == "(":
        words = list(_WORD.finditer(clean, at, opening.start()))
        if not words or clean[words[-1].end() : opening.start()].strip():
            return None
        if words[-1][0] not in _ATTRIBUTES:
            return words[-1][0], opening.start()
        end = _closing(clean, opening.start())
        if end is None:
            return None
        at = end + 1
    return None


def _closing(clean: str, start: int) -> int | None:
    depth = 0
    for at in range(start, len(clean)):
        depth += (clean[at] == "(") - (clean[at] == ")")
        if depth == 0:
            return at
    return None


def _parameters(text: str) -> tuple[SourceParameter, ...]:
    parts = [part.strip() for part in _split(text)]
    if parts in ([""], ["void"]):
        return ()
    return tuple(_parameter(part) for part in parts)


def _split(text: str) -> Iterator[str]:
    """The text between the commas that are in no brackets."""
    closing: list[str] = []
    start = 0
    for at, c in enumerate(text):
        if c in _OPEN:
            closing.append(_OPEN[c])
        elif closing and c == closing[-1]:
            closing.pop()
        elif c == "," and not closing:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _parameter(text: str) -> SourceParameter:
    declared = " ".join(text.partition("=")[0].split())
    if "..." in declared:  # it stands for any number of parameters
        return SourceParameter("", declared)
    inner = re.search(r"\(\s*[*&]+\s*([A-Za-z_]\w*)", declared)
    word = inner or re.search(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$", declared)
    if word is None or word.start(1) == 0:
        return SourceParameter("", declared)
    kept = declared[: word.start(1)].strip() + declared[word.end(1) :].strip()
    return SourceParameter(word[1], re.sub(r"\b__grid_constant__\b|\b__restrict__\b", "", kept).strip())


# --- the kernels of a module ------------------------------------------------------------------------------------


def match_signature(entry: Function, signatures: tuple[Signature, ...]) -> Signature | None:
    """The declaration of ``entry``: that of its name with as many parameters; ``None`` if there is none, or several
    that name them differently.
    """
    cpp = demangle(entry.name)
    name = entry.name if cpp is None else cpp.short
    count = len(entry.parameters)
    fitting = [s for s in signatures if s.name == name and len(s.parameters) == count and _all_named(s)]
    if not fitting or len({tuple(p.name for p in s.parameters) for s in fitting}) > 1:
        return None
    return fitting[-1]


def _all_named(signature: Signature) -> bool:
    names = [p.name for p in signature.parameters]
    return all(names) and len(set(names)) == len(names)


def find_signatures(module: Module) -> Mapping[str, Signature]:
    """The declarations of a module's entries, from the sources that its ``.loc`` lines name, where these are there and
    not newer than the module.
    """
    known: dict[str, tuple[Signature, ...]] = {}
    found: dict[str, Signature] = {}
    for name in module.entries:
        entry = module.functions[name]
        for path in dict.fromkeys(s.source.outermost.path for s in entry.body if s.source is not None):
            if path not in known:
                known[path] = _read_file(path, module.path)
            signature = match_signature(entry, known[path])
            if signature is not None:
                found[name] = signature
                break
    return found


def _read_file(path: str, module: str) -> tuple[Signature, ...]:
    if not path.endswith(SUFFIXES) or not is_regular_file(path):
        return ()
    try:
        if os.path.getsize(path) > LARGEST or os.path.getmtime(path) > os.path.getmtime(module):
            return ()
        with open(path, encoding="utf-8", errors="replace") as file:
            return read_signatures(file.read())
    except OSError:
        return ()


# --- in words ---------------------------------------------------------------------------------------------------


def list_entries(names: tuple[str, ...]) -> list[str]:
    """The entries as a user would type them: the shortest name that only one of them has."""
    return [shortest_name(name, names) for name in names]


def shortest_name(entry: str, names: tuple[str, ...]) -> str:
    """The short, else the qualified, else the whole demangled name of ``entry``, if no other of ``names`` has it."""
    for spelling in _spellings(entry):
        if all(spelling not in _spellings(other) for other in names if other != entry):
            return spelling
    return entry


def resolve_entry(said: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The entries that ``said`` may mean: as the module, or as C++ calls them, where a template argument of any integer
    type is written without its suffix too.
    """
    if said in names:
        return (said,)
    for spelled in (_squeezed, _without_suffixes):
        wanted = spelled(said)
        if found := tuple(name for name in names if wanted in map(spelled, _spellings(name))):
            return found
    return ()


def _spellings(entry: str) -> tuple[str, ...]:
    cpp: CppName | None = demangle(entry)
    return (entry,) if cpp is None else (cpp.short, cpp.qualified, cpp.text)


def _squeezed(name: str) -> str:
    return re.sub(r"\s+", "", name)


def _without_suffixes(name: str) -> str:
    return _INTEGER_SUFFIX.sub("", _squeezed(name))


def describe_parameter(entry: Function, number: int, signature: Signature | None) -> str:
    """A parameter by its name in the source, else by its number where the module's name only repeats that."""
    name = entry.parameters[number].name
    if signature is not None:
        return signature.parameters[number].name
    return f"parameter {number} ({name})" if name == f"{entry.name}_param_{number}" else name
