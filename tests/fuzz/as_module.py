"""Litmus tests as PTX modules: the same threads and instructions, behind branches on ``%ctaid`` and ``%tid``.

Roles whose threads execute the same lines share their code, so that lanes of a warp execute it together. Waits become
loops, blocks become branches or guards, and loops stay loops; several spellings of each are drawn. Lanes that the
litmus test does not have exit at once. A register that a litmus test
reads before it writes it may hold anything, so such tests are not translated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mcheck.base.errors import McheckError
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Place, Program
from tests.fuzz.draft import Draft

SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}
WARP = 32
REGISTERS = {"rd": ".b64", "rs": ".b16", "r": ".b32", "p": ".pred", "q": ".pred", "f": ".f32"}
COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}

_OBJECT = re.compile(r"(\.(?:global|shared)) (?:\.align (\d+) )?\.([bus])(\d+) (.*);")
_NAME = re.compile(r"(\w+)(?:\[(\d+)\])?(?: = (.*))?")
_ADDRESS = re.compile(r"\[(\w+)(?:\[(\d+)\])?(?: *\+ *(\d+))?(?:@(\d+))?\]")
_TEST = re.compile(r"if \((%?\w+) (==|!=|<|<=|>|>=) (\d+)\) \{")
_LOOP = re.compile(r"for (\w+) in (\d+)\.\.(\d+) \{")
_AWAITED = re.compile(r"await (\S+) (%?\w+), (\[\S+\]) (==|!=|<|<=|>|>=) (\d+);")
_POLLED = re.compile(r"await (mbarrier\.\S+) (.*);")
_REGISTER = re.compile(r"(?<![\w.])%?(?:rd|rs|r|p|q|f)\d+\b")
_WIDE = re.compile(r"(?:@!?%?\w+ |await )?(?!mbarrier)[a-z]\S*64 .*;")
_MOVING = re.compile(r"(?:@!?%?\w+ |await )?(?:ld|st)\b.*")
"""What may have a register that is wider than its type."""
_SUM = re.compile(r"(?<=[ {])(%\w+) \+ (%?\w+)(?=[,;}])")
_ELECTION = re.compile(r"elect\.sync [^,]+, (\w+);")
_SIMPLE = re.compile(r"(?!bra|bar|exit|ret|setp|elect|vote|shfl|match|wgmma|@|\})[a-z].*;")
"""What may stand under a guard instead of a branch."""


class Untold(Exception):
    """The litmus test has something that is not translated."""


@dataclass(frozen=True, slots=True)
class Object:
    """A variable: its space, the size of an element, how many there are, and what it holds first."""

    space: str
    align: int
    kind: str
    size: int
    count: int
    value: str

    def declare(self, name: str) -> str:
        """Its declaration in a module."""
        held = f" = {self.value}" if self.value and self.space == ".global" else ""
        if held and "{" not in held:
            held = f" = {{{self.value}}}"
        return f"{self.space} .align {self.align} .{self.kind}{8 * self.size} {name}[{self.count}]{held};"


def write(draft: Draft, random: Random) -> tuple[str, dict[str, Any]] | None:
    """The module and its launch; ``None`` if the test has something that is not translated."""
    try:
        program = parse(draft.text(), f"{draft.name}.litmus")
        return _Module(draft, program, random).write()
    except (Untold, McheckError):
        return None


@dataclass(slots=True)
class _Module:
    draft: Draft
    program: Program
    random: Random
    objects: dict[str, Object] = field(default_factory=dict)
    labels: int = 0
    wide: frozenset[str] = frozenset()
    """The registers of 64 bits."""
    extra: set[str] = field(default_factory=set)
    """Declarations of registers that the test does not have."""

    def write(self) -> tuple[str, dict[str, Any]]:
        """The module and its launch."""
        for text in self.draft.objects:
            self._read_object(text)
        self.wide = _wide_registers([line for role in self.draft.roles for line in role.lines])
        threads = self.program.threads
        roles = {role.name: role for role in self.draft.roles}
        if not _elect_together([(t.place, roles[t.role].lines) for t in threads]):
            raise Untold
        ctas = sorted({t.place.cta.number for t in threads})
        if ctas != list(range(len(ctas))) or any(t.place.cta.gpu for t in threads):
            raise Untold
        width = max(WARP * t.place.warp + t.place.lane for t in threads) + 1
        launch: dict[str, Any] = {"grid": len(ctas), "block": width, "params": {}}
        if self.program.clustered:
            sizes = {c: len({t.place.cta.number for t in threads if t.place.cta.cluster == c})
                     for c in {t.place.cta.cluster for t in threads}}  # fmt: skip
            if len(set(sizes.values())) > 1:
                raise Untold
            launch["cluster"] = next(iter(sizes.values()))
        if len(ctas) > launch.get("cluster", 1):
            launch["cooperative"] = True
        codes: dict[tuple[str, ...], str] = {}
        lines = []
        for t in threads:
            code = codes.setdefault(roles[t.role].lines, f"T{len(codes)}")
            me = t.place.cta.number * width + WARP * t.place.warp + t.place.lane
            lines += [f"setp.eq.u32 %go, %me, {me};", f"@%go bra {code};"]
        lines.append("ret;")
        for body, label in codes.items():
            lines += [f"{label}:", *self._body(body, label), "ret;"]
        return self._around(lines, width), launch

    def _around(self, lines: list[str], width: int) -> str:
        text = "\n".join(lines)
        used = sorted(set(re.findall(r"%(?:rd|rs|r|p|q|f)\d+\b", text)))
        start = []
        for name in used:
            kind = next(v for k, v in REGISTERS.items() if re.fullmatch(rf"%{k}\d+", name))
            kind = ".b64" if name in self.wide else kind
            self.extra.add(f".reg {kind} {name};")
            zero = "0f00000000" if kind == ".f32" else "0"
            start.append(f"setp.ne.u32 {name}, 0, 0;" if kind == ".pred" else f"mov{kind} {name}, {zero};")
        for name in sorted(set(re.findall(r"%g_(\w+)", text))):
            self.extra.add(f".reg .b64 %g_{name};")
            space = self.objects[name].space[1:]
            start += [f"mov.u64 %g_{name}, {name};", f"cvta.{space}.u64 %g_{name}, %g_{name};"]
        shared = [o.declare(n) for n, o in self.objects.items() if o.space == ".shared"]
        outer = [o.declare(n) for n, o in self.objects.items() if o.space == ".global"]
        head = [".version 9.3", ".target sm_100a", ".address_size 64", *outer, ".visible .entry k()", "{"]
        head += [".reg .pred %go, %w;", ".reg .b32 %me, %cta, %t, %m;", *sorted(self.extra), *shared]
        head += ["mov.u32 %cta, %ctaid.x;", "mov.u32 %t, %tid.x;", f"mad.lo.u32 %me, %cta, {width}, %t;", *start]
        return "\n".join([*head, text, "}", ""])

    def _read_object(self, text: str) -> None:
        found = _OBJECT.fullmatch(text)
        if found is None:
            raise Untold
        space, align, kind, size, names = found.groups()
        several = names.split(", ") if "=" not in names else [names]
        for one in several:
            named = _NAME.fullmatch(one)
            if named is None:
                raise Untold
            name, count, value = named.groups()
            bytes_ = SIZES[size]
            self.objects[name] = Object(space, int(align or bytes_), kind, bytes_, int(count or 1), value or "")

    def _label(self) -> str:
        self.labels += 1
        return f"X{self.labels}"

    def _fresh(self, kind: str) -> str:
        self.labels += 1
        name = f"%x{self.labels}"
        self.extra.add(f".reg {kind} {name};")
        return name

    def _bits(self, register: str) -> int:
        return 64 if register in self.wide else 32

    def _body(self, body: tuple[str, ...], code: str) -> Iterator[str]:
        """The lines of a role as PTX."""
        if _reads_unwritten(body):
            raise Untold
        text = "\n".join(body)
        text = re.sub(r"\{ (.+?;) \}$", r"{\n\1\n}", text, flags=re.MULTILINE)
        for label in re.findall(r"^(\w+):$", text, flags=re.MULTILINE):
            text = re.sub(rf"(?<![%\w.:]){label}\b(?=[:;])", f"{code}_{label}", text)
        text = re.sub(r"(?<![%\w.:])r(\d+)\b", r"%r\1", text)
        yield from self._block(text.split("\n"))

    def _block(self, lines: list[str]) -> Iterator[str]:
        k = 0
        while k < len(lines):
            line = lines[k]
            if test := _TEST.fullmatch(line):
                inside, other, k = _split(lines, k)
                yield from self._if((test[1], test[2], test[3]), inside, other)
            elif loop := _LOOP.fullmatch(line):
                inside, other, k = _split(lines, k)
                yield from self._for(loop[1], int(loop[2]), int(loop[3]), inside)
            elif line.startswith("await"):
                yield from self._await(line)
                k += 1
            elif line.endswith("{") or line.startswith(("const", ".reg", "}")):
                raise Untold
            else:
                yield from self._instruction(line)
                k += 1

    def _if(self, test: tuple[str, str, str], inside: list[str], other: list[str]) -> Iterator[str]:
        left, operator, right = test
        mode, p = f"{COMPARISONS[operator]}.u{self._bits(left)}", self._fresh(".pred")
        other_mode = f"{OPPOSITE[COMPARISONS[operator]]}.u{self._bits(left)}"
        if left.startswith("%") and not re.fullmatch(r"%r\d+", left):
            yield f"mov.u32 %m, {left};"
            left = "%m"
        guarded = not other and all(_SIMPLE.fullmatch(line) and "await" not in line for line in inside)
        if guarded and self.random.random() < 0.5:
            if self.random.random() < 0.5:
                yield f"setp.{mode} {p}, {left}, {right};"
                guard = f"@{p} "
            else:
                yield f"setp.{other_mode} {p}, {left}, {right};"
                guard = f"@!{p} "
            for line in inside:
                *before, last = self._instruction(line)
                yield from before
                yield guard + last
            return
        if self.random.random() < 0.5:
            yield f"setp.{mode} {p}, {left}, {right};"
            guard = f"@!{p}"
        else:
            yield f"setp.{other_mode} {p}, {left}, {right};"
            guard = f"@{p}"
        away, end = self._label(), self._label()
        yield f"{guard} bra {away};"
        yield from self._block(inside)
        if other:
            yield f"bra {end};"
        yield f"{away}:"
        if other:
            yield from self._block(other)
            yield f"{end}:"

    def _for(self, name: str, first: int, end: int, inside: list[str]) -> Iterator[str]:
        if end <= first:
            return
        p, register = self._fresh(".pred"), self._fresh(".b32")
        rest = self._fresh(".b32")
        text = "\n".join(inside)
        odd = re.search(rf"\b{name} % 2\b", text)
        text = re.sub(rf"\b{name} % 2\b", rest, text)
        text = re.sub(rf"(?<![%\w.]){name}\b", register, text)
        label = self._label()
        yield f"mov.u32 {register}, {first};"
        yield f"{label}:"
        if odd:
            yield f"and.b32 {rest}, {register}, 1;"
        yield from self._block(text.split("\n") if inside else [])
        yield f"add.u32 {register}, {register}, 1;"
        yield f"setp.lt.u32 {p}, {register}, {end};"
        yield f"@{p} bra {label};"

    def _await(self, line: str) -> Iterator[str]:
        again, out = self._label(), self._label()
        p = self._fresh(".pred")
        if found := _AWAITED.fullmatch(line):
            name, register, place, operator, value = found.groups()
            mode, bits = COMPARISONS[operator], self._bits(register)
            poll = [*self._instruction(f"{name} {register}, {place};")]
            form = self.random.choice(("fails", "holds", "middle", "selected"))
            test = f"setp.{mode}.u{bits} {p}, {register}, {value};"
            if form == "fails":
                test = f"setp.{OPPOSITE[mode]}.u{bits} {p}, {register}, {value};"
        elif found := _POLLED.fullmatch(line):
            name, operands = found.groups()
            poll = [*self._instruction(f"{name} {p}, {operands};")]
            form, test = self.random.choice(("holds", "middle", "selected")), ""
        else:
            raise Untold
        if form == "fails":
            yield from (f"{again}:", *poll, test, f"@{p} bra {again};")
        elif form == "holds":
            yield from (f"{again}:", *poll, test, f"@!{p} bra {again};")
        elif form == "middle":
            yield from (f"{again}:", *poll, test, f"@{p} bra {out};", f"bra {again};", f"{out}:")
        else:
            r = self._fresh(".b32")
            yield from (f"{again}:", *poll, test, f"selp.u32 {r}, 1, 0, {p};")
            yield from (f"setp.eq.u32 {p}, {r}, 0;", f"@{p} bra {again};")

    def _instruction(self, line: str) -> Iterator[str]:
        """An instruction, its addresses with registers where PTX needs them."""
        if re.fullmatch(r"\w+:", line):
            yield line
            return
        opcode = re.sub(r"^@!?%\w+ ", "", line).split(" ")[0]
        if opcode.startswith("wgmma.mma"):  # descriptors in the dialect of litmus tests
            raise Untold
        spaced = re.search(r"\.(global|shared)", opcode) is not None
        before: list[str] = []

        def place(found: re.Match[str]) -> str:
            name, index, offset, cta = found.groups()
            if name not in self.objects:
                return found[0]
            held = self.objects[name]
            at = int(index or 0) * held.size + int(offset or 0)
            if cta is not None:
                remote = self._fresh(".b32")
                before.append(f"mov.u32 {remote}, {name};")
                before.append(f"mapa.shared::cluster.u32 {remote}, {remote}, {cta};")
                return f"[{remote}+{at}]"
            return f"[{name}+{at}]" if spaced else f"[%g_{name}+{at}]"

        def total(found: re.Match[str]) -> str:
            result = self._fresh(".b32")
            before.append(f"add.u32 {result}, {found[1]}, {found[2]};")
            return result

        text = _SUM.sub(total, _ADDRESS.sub(place, line))
        if "@" in text.lstrip("@") or (before and line.startswith("@")):
            raise Untold
        yield from before
        yield text


def _elect_together(threads: list[tuple[Place, tuple[str, ...]]]) -> bool:
    """Whether all lanes of a warp that an election names come to one: a litmus test may elect one that does not."""
    found = [(place, _ELECTION.findall("\n".join(lines))) for place, lines in threads]
    return not any(
        (there.cta, there.warp) == (place.cta, place.warp)
        and int(mask, 0) >> there.lane & 1
        and masks.count(mask) != others.count(mask)
        for place, masks in found
        for mask in masks
        for there, others in found
    )


def _wide_registers(lines: list[str]) -> frozenset[str]:
    """The registers of instructions on 64 bits, but those of that name. Raises ``Untold`` where something else than a
    load or a store of fewer bits has one of them.
    """
    named = {line: {f"%{name.lstrip('%')}" for name in re.findall(r"(?<![\w.@])%?r\d+\b", line)} for line in lines}
    wide = frozenset[str]().union(*(found for line, found in named.items() if _WIDE.fullmatch(line)))
    if any(found & wide and not _WIDE.fullmatch(line) and not _MOVING.fullmatch(line) and not line.startswith("if")
           for line, found in named.items()):  # fmt: skip
        raise Untold
    return wide


def _reads_unwritten(lines: tuple[str, ...]) -> bool:
    """Whether a register is read before a line that writes it: in a litmus test it may hold anything then."""
    written: set[str] = set()
    for line in lines:
        guard, _, rest = line.rpartition(" ") if line.startswith("if") else line.removeprefix("await ").partition(" ")
        if line.startswith("@"):
            guard, _, rest = line.partition(" ")
            opcode, _, rest = rest.partition(" ")
        else:
            opcode = guard
        writes = not re.match(r"(st|red|cp|if|bar|bra|fence|wgmma|mbarrier\.(init|inval|expect|complete))\b", opcode)
        target = re.match(r"\{.*?\}|[^,;]*", rest)[0] if writes else ""  # type: ignore[index]
        read = f"{guard if guard != opcode or line.startswith('if') else ''} {rest[len(target) :]}"
        if not {name.lstrip("%") for name in _REGISTER.findall(read)} <= written:
            return True
        written |= {name.lstrip("%") for name in _REGISTER.findall(target)}
    return False


def _split(lines: list[str], at: int) -> tuple[list[str], list[str], int]:
    """The lines in a block that begins at ``at``, those of its other branch, and where it goes on."""
    depth, middle = 0, None
    for k in range(at, len(lines)):
        if lines[k] == "} else {" and depth == 1:
            middle = k
            continue
        depth += lines[k].endswith("{") - lines[k].startswith("}")
        if not depth:
            inside = lines[at + 1 : k if middle is None else middle]
            return inside, [] if middle is None else lines[middle + 1 : k], k + 1
    raise Untold
