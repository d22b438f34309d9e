"""Source locations of the code: ``.file``, ``.loc`` and the names of inlined functions (PTX ISA 11.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.frontend.ptx.module import SourceLine

_FILE = re.compile(r'^[ \t]*\.file\s+(\d{1,9})\s+"((?:[^"\\\n]|\\.)*)"', re.MULTILINE)
_STRINGS = re.compile(r"\.section\s++\.debug_str\s*+\{")
_STRING = re.compile(r"([\w$]+):|\.b8\s+([\d,\s]+)")
_FAR = 2
_BEGIN, _END = "// begin inline asm", "// end inline asm"
LOC = re.compile(
    r"\.loc\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})"
    r"(?:\s*,\s*function_name\s+([\w$]+)(?:\s*\+\s*\d+)?\s*,\s*inlined_at\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9}))?"
)
_COMMENTED = re.compile(rf"{LOC.pattern}(?:[ \t]*//.*)?")


def file_table(clean: str) -> dict[int, str]:
    """The ``.file`` table, which usually follows the functions that use it."""
    return {int(match[1]): match[2] for match in _FILE.finditer(clean)}


def debug_strings(clean: str) -> dict[str, str]:
    """The strings of ``.debug_str`` by their labels."""
    found: dict[str, str] = {}
    for section in _STRINGS.finditer(clean):
        end = clean.find("}", section.end())
        if end < 0:  # the reader will complain
            break
        label, data = None, bytearray()
        for match in _STRING.finditer(clean, section.end(), end):
            if match[1] is not None:
                if label is not None:
                    found[label] = _decode_string(data)
                label, data = match[1], bytearray()
            else:
                data += bytes(int(word) & 255 for word in match[2].split(",") if word.strip().isdecimal())
        if label is not None:
            found[label] = _decode_string(data)
    return found


def _decode_string(data: bytearray) -> str:
    return bytes(data).partition(b"\0")[0].decode("utf-8", "replace")


@dataclass(slots=True)
class InlineAssembly:
    """The blocks of inline assembly in a module, by the comments of its compiler around them.

    A ``.loc`` within such a block is the compiler's count of the lines of the assembly, from the statement's on, as if
    each were a line of the source. ``text`` is the module.
    """

    text: str
    _seen: int = 0
    _block: int | None = None

    def counts_lines(self, offset: int) -> bool:
        """Whether the ``.loc`` at the offset, which is behind those asked about before, comes after text of a block."""
        begin, end = self.text.rfind(_BEGIN, self._seen, offset), self.text.rfind(_END, self._seen, offset)
        self._seen = offset
        if begin != end:
            self._block = begin + len(_BEGIN) if begin > end else None
        return self._block is not None and bool(_COMMENTED.sub("", self.text[self._block : offset]).strip())


@dataclass(slots=True)
class Lines:
    """The source lines of one function from its ``.loc`` directives.

    ``inlined_at`` names a place, but not the call that the code there was inlined in itself. If that place was seen in
    several calls, the one in the line of the code before, or a line beside it, is taken to be meant, else the last: not
    that line where it follows on code that was inlined in it, since the call has returned by then.
    """

    files: Mapping[int, str]
    strings: Mapping[str, str]
    _seen: dict[tuple[str, str, str], dict[SourceLine, None]] = field(default_factory=dict)
    _before: SourceLine | None = None
    _returned: SourceLine | None = None

    def take(self, match: re.Match[str]) -> SourceLine | None:
        """The location that a match of ``LOC`` names; ``None`` for line 0, which marks code without a source."""
        where = (match[1], match[2], match[3])
        at = None
        if match[5] is not None:
            at = self._caller(match[5], match[6], match[7])
        function = self.strings.get(match[4], match[4]) if match[4] is not None else None
        found = self._line(*where, function, at)
        if found is not None:
            seen = self._seen.setdefault(where, {})
            seen.pop(found, None)
            seen[found] = None
            back = found.inlined_at is None and self._before is not None and _is_call_of(found, self._before)
            self._returned = found if back else None
            self._before = found
        return found

    def _caller(self, file: str, line: str, column: str) -> SourceLine | None:
        """The place that code was inlined at, with the calls that it was inlined in itself."""
        seen = self._seen.get((file, line, column))
        if not seen:
            return self._line(file, line, column, None, None)
        before, returned = self._before and self._before.outermost, self._returned
        return min(
            reversed(seen),
            key=lambda one: (returned is not None and _is_call_of(returned, one), _distance(before, one.outermost)),
        )

    def _line(
        self, file: str, line: str, column: str, function: str | None, at: SourceLine | None
    ) -> SourceLine | None:
        if int(line) == 0:
            return at
        return SourceLine(self.files.get(int(file), f"file {file}"), int(line), int(column), function, at)


def _is_call_of(line: SourceLine, inlined: SourceLine) -> bool:
    """Whether code was inlined in a line of the kernel."""
    at = inlined.outermost
    return inlined.inlined_at is not None and (at.path, at.line) == (line.path, line.line)


def _distance(one: SourceLine | None, other: SourceLine) -> int:
    """How far two lines are from each other: 0, 1, or farther."""
    if one is None or one.path != other.path:
        return _FAR
    return min(abs(one.line - other.line), _FAR)
