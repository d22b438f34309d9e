"""Demangles the names that C++ compilers give kernels (Itanium C++ ABI, 5.1): ``_Z1kILi3EEvPKfi`` is ``k<3>(float
const*, int)``.

Expressions and the rarer kinds of names (operators, closures) are not read: such a name stays as it is.
"""

from __future__ import annotations

from typing import Final

from mcheck.base.records import dataclass

_BUILTIN: Final = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double",
    "e": "long double", "g": "__float128", "z": "...",
}  # fmt: skip
_EXTENDED: Final = {
    "n": "std::nullptr_t", "i": "char32_t", "s": "char16_t", "u": "char8_t", "a": "auto", "h": "_Float16",
}  # fmt: skip
_STANDARD: Final = {"t": "std", "a": "std::allocator", "b": "std::basic_string", "s": "std::string"}
_LITERAL_SUFFIX: Final = {"j": "u", "l": "l", "m": "ul", "x": "ll", "y": "ull"}
_LONGEST: Final = 20_000
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CppName:
    """A demangled function: ``qualified`` is its name with namespaces and template arguments, ``types`` are those of
    its parameters.
    """

    qualified: str
    types: tuple[str, ...]

    @property
    def text(self) -> str:
        """The name with its parameters, as a C++ programmer reads it."""
        return f"{self.qualified}({', '.join(self.types)})"

    @property
    def short(self) -> str:
        """The identifier alone, without namespaces and template arguments."""
        return _without_arguments(self.qualified).rpartition("::")[2]


def demangle(name: str) -> CppName | None:
    """The C++ function that ``name`` stands for; ``None`` if it is not a mangled name, or not one of those read."""
    if not name.startswith("_Z") or len(name) > _LONGEST:
        return None
    try:
        return _Parser(name).function()
    except (_Unread, IndexError, ValueError):
        return None


class _Unread(Exception):
    """The name has a part that is not read."""


def _without_arguments(name: str) -> str:
    kept, depth = [], 0
    for c in name:
        depth += c == "<"
        if not depth:
            kept.append(c)
        depth -= c == ">"
    return "".join(kept)


class _Parser:
    def __init__(self, name: str) -> None:
        self._text = name
        self._at = 2
        self._seen: list[str] = []
        self._arguments: list[str] = []
        self._packs: dict[int, list[str]] = {}
        self._depth = 0

    def function(self) -> CppName:
        qualified, templated = self._name()
        types = []
        if templated and self._at < len(self._text):
            self._type()  # what a template returns is part of its name
        while self._at < len(self._text) and self._text[self._at] not in ".$E":
            types += self._pack() if self._skip("Dp") else [self._type()]
        return CppName(qualified=qualified, types=() if types == ["void"] else tuple(types))

    # --- the text -------------------------------------------------------------------------------------------------

    def _next(self, count: int = 1) -> str:
        found = self._text[self._at : self._at + count]
        if len(found) < count:
            raise _Unread
        self._at += count
        return found

    def _skip(self, word: str) -> bool:
        if not self._text.startswith(word, self._at):
            return False
        self._at += len(word)
        return True

    def _number(self) -> int:
        start = self._at
        while self._text[self._at : self._at + 1].isdigit():
            self._at += 1
        return int(self._text[start : self._at])

    # --- names ----------------------------------------------------------------------------------------------------

    def _name(self) -> tuple[str, bool]:
        """A name, and whether it ends in template arguments."""
        if self._skip("N"):
            return self._nested()
        if self._skip("Z"):
            outer, _ = self._name()
            while not self._skip("E"):
                self._type()
            inner, templated = self._name()
            if self._skip("_"):
                self._number()
            return f"{outer}::{inner}", templated
        if self._text[self._at] == "S" and self._text[self._at + 1] != "t":
            found = self._substitution()
        else:
            found = ("std::" if self._skip("St") else "") + self._identifier()
            if self._text.startswith("I", self._at):
                self._seen.append(found)
        if not self._text.startswith("I", self._at):
            return found, False
        return found + self._template_arguments(), True

    def _nested(self) -> tuple[str, bool]:
        while self._text[self._at] in "rVK":
            self._at += 1
        found, templated = "", False
        while not self._skip("E"):
            c = self._text[self._at]
            if c == "I":
                found, templated = found + self._template_arguments(), True
            elif c == "S":
                found, templated = self._substitution(), False
                continue
            elif c == "T":
                found, templated = self._template_parameter(), False
            else:
                self._skip("L")
                found, templated = f"{found}::{self._identifier()}" if found else self._identifier(), False
            if self._text[self._at] != "E":
                self._seen.append(found)
        return found, templated

    def _identifier(self) -> str:
        word = self._next(self._number())
        return "(anonymous namespace)" if word.startswith("_GLOBAL__N_") else word

    def _substitution(self) -> str:
        self._next()
        c = self._next()
        if c in _STANDARD:
            return _STANDARD[c]
        if c == "_":
            return self._seen[0]
        digits = c
        while not self._skip("_"):
            digits += self._next()
        return self._seen[int(digits, 36) + 1]

    def _template_parameter(self) -> str:
        return self._arguments[self._template_index()]

    def _template_index(self) -> int:
        self._next()
        if self._skip("_"):
            return 0
        number = self._number()
        if not self._skip("_"):
            raise _Unread
        return number + 1

    def _pack(self) -> list[str]:
        """The types that a parameter pack ``T...`` stands for."""
        if self._text[self._at] != "T":
            raise _Unread
        number = self._template_index()
        if number not in self._packs:
            raise _Unread
        return self._packs[number]

    def _template_arguments(self) -> str:
        self._next()
        found: list[list[str]] = []
        packs: dict[int, list[str]] = {}
        while not self._skip("E"):
            packed = self._text.startswith("J", self._at)
            found.append(self._template_argument())
            if packed:
                packs[len(found) - 1] = found[-1]
        self._arguments = [", ".join(argument) for argument in found]
        self._packs = packs
        return f"<{', '.join(filter(None, self._arguments))}>"

    def _template_argument(self) -> list[str]:
        if self._skip("L"):
            return [self._literal()]
        if self._skip("J"):
            pack: list[str] = []
            while not self._skip("E"):
                pack += self._template_argument()
            return pack
        if self._text[self._at] == "X":
            raise _Unread
        return [self._type()]

    def _literal(self) -> str:
        if self._skip("_Z"):
            found = self._name()[0]
            while not self._skip("E"):
                self._type()
            return found
        code = self._text[self._at]
        kind = self._type()
        end = self._text.index("E", self._at)
        value = self._next(end - self._at).replace("n", "-")
        self._next()
        if code == "b":
            return {"0": "false", "1": "true"}.get(value, value)
        return value + _LITERAL_SUFFIX.get(code, "") if code in _BUILTIN else f"({kind}){value}"

    # --- types ----------------------------------------------------------------------------------------------------

    def _type(self) -> str:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Unread
        found = self._read_type()
        self._depth -= 1
        return found

    def _read_type(self) -> str:
        c = self._text[self._at]
        if c in _BUILTIN:
            self._at += 1
            return _BUILTIN[c]
        if c == "D":
            return self._extended()
        if c in "PRO":
            self._at += 1
            return self._remembered(_pointing(self._type(), {"P": "*", "R": "&", "O": "&&"}[c]))
        if c in "rVK":
            words = []
            while self._text[self._at] in "rVK":
                words.append({"r": "__restrict__", "V": "volatile", "K": "const"}[self._next()])
            return self._remembered(f"{self._type()} {' '.join(reversed(words))}")
        if c == "A":
            self._at += 1
            size = self._number()
            if not self._skip("_"):
                raise _Unread
            return self._remembered(f"{self._type()} [{size}]")
        if c == "F":
            self._at += 1
            back, of = self._type(), []
            while not self._skip("E"):
                of.append(self._type())
            return self._remembered(f"{back} ({', '.join(of) if of != ['void'] else ''})")
        if c == "T":
            found = self._remembered(self._template_parameter())
        elif c == "S" and self._text[self._at + 1] != "t":
            found = self._substitution()
        elif c == "u":
            self._at += 1
            return self._remembered(self._identifier())
        else:
            return self._remembered(self._name()[0])
        if self._text.startswith("I", self._at):
            return self._remembered(found + self._template_arguments())
        return found

    def _extended(self) -> str:
        code = self._next(2)[1]
        if code == "F":
            bits = self._number()
            bfloat = self._skip("b")
            return "__bf16" if bfloat else f"_Float{bits}" if self._skip("_") else f"_Float{bits}x"
        if code not in _EXTENDED:
            raise _Unread
        return _EXTENDED[code]

    def _remembered(self, found: str) -> str:
        self._seen.append(found)
        return found


def _pointing(to: str, mark: str) -> str:
    """The type of a pointer or a reference: its mark goes into the brackets of an array or a function."""
    if " [" in to:
        base, bracket, rest = to.partition(" [")
        return f"{base} ({mark}){bracket}{rest}"
    base, bracket, rest = to.partition(" (")
    return f"{base} ({mark}){bracket[1:]}{rest}" if bracket else f"{to}{mark}"
