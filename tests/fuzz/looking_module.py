"""The module of lanes that look at words of another CTA (``tests.fuzz.looking_lanes``)."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fuzz.looking_lanes import CELLS, PREDICATES, VALUES, WORDS, Op, Program

LAUNCH = {
    "grid": [2],
    "params": {
        "0": {"buffer": 8 * WORDS, "init": {"hex": "00" * 8 * WORDS}}, "1": {"buffer": CELLS}, "2": {"buffer": 32},
        "3": {"buffer": 4}, "4": {"buffer": 4, "init": {"hex": "00000000"}},
    },
}  # fmt: skip
"""The launch, but for the number of threads."""


@dataclass
class _Text:
    """The text of a module so far."""

    program: Program
    lines: list[str] = field(default_factory=list)
    labels: int = 0

    def label(self) -> int:
        self.labels += 1
        return self.labels

    def add(self, *lines: str) -> None:
        self.lines += lines

    def write(self, op: Op) -> None:
        """One operation of the CTA that publishes."""
        match op:
            case ("data", at, size):
                register = {1: "%r1", 2: "%h1", 4: "%r1", 8: "%rd6"}[size]
                self.add(f"st.global.u{8 * size} [%rd2+{at}], {register};")
            case ("fence", text):
                self.add(f"{text};")
            case ("flag", word, value, mixed, sem, exchanges):
                form = self.program.forms[word]
                self.add(f"mov.u32 %r4, {value};")
                if mixed and form == "u32":
                    self.add("shl.b32 %r5, %r3, 8;", "or.b32 %r4, %r4, %r5;")
                high = "%r3" if mixed else "%r6"
                self.add(f"mov.u32 %r6, {value};", f"mov.b64 %rd7, {{%r4, {high}}};")
                source, kind = {
                    "u32": ("%r4", "u32"), "u64": ("%rd7", "u64"), "v2": (f"{{%r4, {high}}}", "v2.u32"),
                }[form]  # fmt: skip
                if exchanges and form != "v2":
                    target = "%r7" if form == "u32" else "%rd8"
                    self.add(f"atom.{sem}.global.exch.b{kind[1:]} {target}, [%rd1+{8 * word}], {source};")
                else:
                    self.add(f"st.{sem}.global.{kind} [%rd1+{8 * word}], {source};")

    def read(self, op: Op) -> None:
        """One operation of the CTA that looks."""
        mask = (1 << self.program.lanes) - 1
        match op:
            case ("look", first, second, word, mine, acquires, guard):
                form = self.program.forms[word]
                at = f"%rd1+{8 * word}"
                if mine:
                    form = self.program.forms[0]
                    at = "%rd9"
                at = f"[{at}]"
                sem = "acquire" if acquires else "relaxed"
                text = "" if guard is None else f"@%q{guard} "
                if form == "u32":
                    self.add(f"{text}ld.{sem}.gpu.global.u32 %v{first}, {at};")
                elif form == "v2":
                    self.add(f"{text}ld.{sem}.gpu.global.v2.u32 {{%v{first}, %v{second}}}, {at};")
                else:
                    self.add(f"{text}ld.{sem}.gpu.global.u64 %rd8, {at};")
                    self.add(f"{text}mov.b64 {{%v{first}, %v{second}}}, %rd8;")
            case ("fence", text):
                self.add(f"{text};")
            case ("alu", name, to, one, other):
                kind = "u32" if name in ("add", "shr") else "b32"
                source = f"%v{other}" if other >= 0 and name[:2] != "sh" else str(abs(other))
                self.add(f"{name}.{kind} %v{to}, %v{one}, {source};")
            case ("setp", to, test, one, value):
                self.add(f"setp.{test}.u32 %q{to}, %v{one}, {value};")
            case ("select", to, one, other, by):
                self.add(f"selp.b32 %v{to}, %v{one}, %v{other}, %q{by};")
            case ("load", to, at, size):
                self.add(f"ld.global.u{8 * size} %{'h2' if size == 2 else f'v{to}'}, [%rd2+{at}];")
                if size == 2:
                    self.add(f"cvt.u32.u16 %v{to}, %h2;")
            case ("selected", to, one, other, size, by):
                self.add(f"add.u64 %rd10, %rd2, {one};", f"add.u64 %rd11, %rd2, {other};")
                self.add(f"selp.b64 %rd10, %rd10, %rd11, %q{by};", f"ld.global.u{8 * size} %v{to}, [%rd10];")
            case ("bad",):
                self.add("st.global.u32 [%rd4], %r1;")
            case ("out", one):
                self.add(f"st.global.u32 [%rd3], %v{one};")
            case ("if", by, negated, yes, no):
                n = self.label()
                self.add(f"@{'' if negated else '!'}%q{by} bra ELSE{n};")
                self.read_all(yes)
                self.add(f"bra END{n};", f"ELSE{n}:")
                self.read_all(no)
                self.add(f"END{n}:")
            case ("wait", by, body):
                n = self.label()
                self.add(f"AGAIN{n}:")
                self.read_all(body)
                self.add(f"@%q{by} bra AGAIN{n};")
            case ("repeat", count, body):
                n = self.label()
                self.add(f"mov.u32 %c{n}, 0;", f"AGAIN{n}:")
                self.read_all(body)
                self.add(f"add.u32 %c{n}, %c{n}, 1;", f"setp.lt.u32 %p2, %c{n}, {count};", f"@%p2 bra AGAIN{n};")
            case ("vote", to, mode, one, negated):
                self.add(f"vote.sync.{mode}.pred %q{to}, {'!' if negated else ''}%q{one}, {mask};")
            case ("ballot", to, one):
                self.add(f"vote.sync.ballot.b32 %v{to}, %q{one}, {mask};")
            case ("shuffle", mode, to, one, by):
                self.add(f"shfl.sync.{mode}.b32 %v{to}, %v{one}, {by}, {0 if mode == 'up' else 31}, {mask};")
            case ("sum", to, one):
                self.add(f"redux.sync.add.u32 %v{to}, %v{one}, {mask};")
            case ("meet",):
                self.add(f"bar.warp.sync {mask};")
            case _:
                raise AssertionError(op)

    def read_all(self, body: tuple[Op, ...]) -> None:
        for op in body:
            self.read(op)


def write(program: Program) -> str:
    """The module."""
    text = _Text(program)
    text.add("@%p1 bra LOOKS;", "mov.u32 %r1, 7;", "mov.u64 %rd6, 7;", "mov.u16 %h1, 7;", "ld.global.u32 %r3, [%rd3];")
    for lane, ops in enumerate(program.writers):
        text.add(f"setp.ne.u32 %p2, %r0, {lane};", f"@%p2 bra LANE{lane};")
        for op in ops:
            text.write(op)
        text.add(*(["st.global.u32 [%rd4], %r1;"] if lane == 0 else []), f"LANE{lane}:")
    text.add("ret;", "LOOKS:", "mul.wide.u32 %rd9, %r0, 8;", "add.u64 %rd9, %rd9, %rd1;")
    text.add(*(f"mov.u32 %v{k}, 0;" for k in range(VALUES)))
    text.add(*(f"setp.ne.u32 %q{k}, %r0, {k};" for k in range(PREDICATES)))
    text.read_all(program.reader)
    body = "\n".join(f"  {line}" for line in text.lines)
    return f""".version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 flags, .param .u64 data, .param .u64 out, .param .u64 extra, .param .u64 ticket)
{{
  .reg .pred %p<3>, %q<{PREDICATES}>;
  .reg .b16 %h<3>;
  .reg .b32 %r<8>, %v<{VALUES}>, %c<{text.labels + 1}>;
  .reg .b64 %rd<12>;
  .shared .align 4 .b8 drawn[4];
  ld.param.u64 %rd1, [flags];
  ld.param.u64 %rd2, [data];
  ld.param.u64 %rd3, [out];
  ld.param.u64 %rd4, [extra];
  ld.param.u64 %rd5, [ticket];
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p1, %r0, 0;
  @%p1 bra DRAWN;
  atom.global.add.u32 %r1, [%rd5], 1;
  st.shared.u32 [drawn], %r1;
DRAWN:
  bar.sync 0;
  ld.shared.u32 %r1, [drawn];
  setp.ne.u32 %p1, %r1, 0;
  mad.wide.u32 %rd3, %r1, 16, %rd3;
  mad.wide.u32 %rd3, %r0, 4, %rd3;
{body}
  ret;
}}
"""
