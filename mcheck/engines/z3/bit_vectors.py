"""Terms as SMT-LIB bit-vectors.

A term is computed on unbounded integers or on those of a PTX type. A ``Vector`` is a signed bit-vector that is wide
enough for every value of the term, so no bits are lost; a literal says whether the value is known. Operations without a
translation (floating point, tensor maps) become variables, which are corrected if a solution gives one of them a wrong
value.
"""

from __future__ import annotations

from mcheck.base.errors import Unsupported
from mcheck.base.records import dataclass
from mcheck.engines.z3.clauses import FALSE, TRUE, Clauses, Side, spell
from mcheck.engines.z3.symbolic_choices import Opened, Token
from mcheck.events.event import Event
from mcheck.ir.alu import bounds, width
from mcheck.ir.ops import Collective
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.terms import Term, Uid, is_integer

MAX_WIDTH = 2048

TOKEN_BITS = 64
"""The width of the state operand of an mbarrier."""


@dataclass(frozen=True, slots=True)
class Vector:
    """A signed bit-vector: its SMT-LIB ``text``, its width ``bits``; ``known`` is the literal that it has a value."""

    text: str
    bits: int
    known: int = TRUE


@dataclass(frozen=True, slots=True)
class Guess:
    """A term whose operation has no translation: its variable and its arguments."""

    term: Term
    vector: Vector
    arguments: tuple[tuple[Term, Vector], ...]


def constant(value: int) -> Vector:
    """An integer as a vector of minimal width."""
    bits = value.bit_length() + 1
    return Vector(literal(value, bits), bits)


def literal(value: int, bits: int) -> str:
    """An integer as a bit-vector constant of this width."""
    return f"(_ bv{value & ((1 << bits) - 1)} {bits})"


class Vectors:
    """The bit-vectors of the values of one structure."""

    def __init__(self, prepared: Opened, clauses: Clauses, selectors: list[list[int]]) -> None:
        self.prepared = prepared
        self.s = prepared.s
        self.clauses = clauses
        self.selectors = selectors
        self.lines: list[str] = []
        self.names = 0
        self.nodes: dict[int, Vector] = {}
        self.events: dict[Uid, Vector] = {}
        self.terms: dict[Term, Vector] = {}
        self.pieces: dict[tuple[Term, int, int], Vector] = {}
        self.guesses: list[Guess] = []
        self.finals = {c.address: k for k, c in enumerate(prepared.choices) if c.kind == "final"}

    def take_lines(self) -> list[str]:
        """The SMT-LIB lines since the last call."""
        lines, self.lines = self.lines, []
        return lines

    # --- shapes -------------------------------------------------------------------------------------------

    def _name(self) -> str:
        self.names += 1
        return f"t{self.names}"

    def _variable(self, bits: int) -> str:
        name = self._name()
        self.lines.append(f"(declare-const {name} (_ BitVec {bits}))")
        return name

    def _let(self, text: str, bits: int) -> str:
        """Names a definition, so that shared terms stay shared."""
        if bits > MAX_WIDTH:
            raise Unsupported("a value of too many bits")
        name = self._variable(bits)
        self.lines.append(f"(assert (= {name} {text}))")
        return name

    def widen(self, v: Vector, bits: int) -> str:
        """The value in a wider vector, or the low bits in a narrower one."""
        if bits == v.bits:
            return v.text
        if bits > v.bits:
            return f"((_ sign_extend {bits - v.bits}) {v.text})"
        return f"((_ extract {bits - 1} 0) {v.text})"

    def unsigned(self, v: Vector, bits: int) -> Vector:
        """The low ``bits`` bits as a non-negative integer."""
        return Vector(self._let(f"(concat #b0 {self.widen(v, bits)})", bits + 1), bits + 1, v.known)

    def signed(self, v: Vector, bits: int) -> Vector:
        """The low ``bits`` bits as a signed integer."""
        return Vector(self._let(self.widen(v, bits), bits), bits, v.known)

    def wrap(self, type_name: str, v: Vector) -> Vector:
        """The value wrapped into the range of a PTX type."""
        bits = width(type_name)
        return self.signed(v, bits) if type_name[0] == "s" else self.unsigned(v, bits)

    def all_known(self, *vectors: Vector) -> int:
        """The literal that all of them have a value."""
        return self.clauses.all_of([v.known for v in vectors], Side.EXACT)

    def is_nonzero(self, v: Vector) -> str:
        """Whether the value is not zero, as an SMT-LIB Boolean."""
        return f"(not (= {v.text} {literal(0, v.bits)}))"

    def _literal(self, text: str) -> int:
        """A literal for an SMT-LIB Boolean."""
        found = self.clauses.new()
        self.lines.append(f"(assert (= {spell(found)} {text}))")
        return found

    def from_boolean(self, text: str, known: int) -> Vector:
        """An SMT-LIB Boolean as 0 or 1."""
        return Vector(self._let(f"(ite {text} #b01 #b00)", 2), 2, known)

    def compare(self, op: str, a: Vector, b: Vector) -> str:
        """A comparison as an SMT-LIB Boolean."""
        bits = max(a.bits, b.bits)
        x, y = self.widen(a, bits), self.widen(b, bits)
        match op:
            case "==":
                return f"(= {x} {y})"
            case "!=":
                return f"(not (= {x} {y}))"
        name = {"<": "bvslt", "<=": "bvsle", ">": "bvsgt", ">=": "bvsge"}[op]
        return f"({name} {x} {y})"

    # --- what is read and written ---------------------------------------------------------------------------

    def read_result(self, read: int) -> Vector:
        """The raw bytes that a read node returns."""
        found = self.nodes.get(read)
        if found is None:
            bits = 8 * self.s.nodes[read].size
            known = self.clauses.new()
            found = self.nodes[read] = Vector(self._variable(bits + 1), bits + 1, known)
            k = self.prepared.reader[read]
            for o, option in enumerate(self.prepared.choices[k].options):
                self._equal(found, self.write_result(option.source), self.selectors[k][o])
        return found

    def _equal(self, a: Vector, b: Vector, under: int) -> None:
        """Constrains two vectors to have the same value, or none, if a literal holds."""
        bits = max(a.bits, b.bits)
        values = f"(= {self.widen(a, bits)} {self.widen(b, bits)})"
        body = f"(and {values} (= {spell(a.known)} {spell(b.known)}))"
        self.lines.append(f"(assert {body})" if under == TRUE else f"(assert (=> {spell(under)} {body}))")

    def select(self, vectors: list[tuple[Vector, int]]) -> Vector:
        """The vector whose literal holds."""
        if len(vectors) == 1:
            return vectors[0][0]
        bits = max(v.bits for v, _ in vectors)
        found = Vector(self._variable(bits), bits, self.clauses.new())
        for v, under in vectors:
            self._equal(found, v, under)
        return found

    def write_result(self, write: int, offset: int = 0, size: int | None = None) -> Vector:
        """The raw bytes that a write node writes, or ``size`` of them."""
        node = self.s.nodes[write]
        length = node.size if size is None else size
        if node.source is None:
            return self.piece(node.initial, offset, length)
        return self.piece(node.source.value, node.offset + offset, length)

    def event_result(self, uid: Uid) -> Vector:
        """The result of an event: the bytes of a read, or the result that an option gives."""
        found = self.events.get(uid)
        if found is None:
            found = self.events[uid] = self._event(uid)
        return found

    def _event(self, uid: Uid) -> Vector:
        event = self.s.events[uid]
        if event.size:
            return self._joined([(self.read_result(n), self.s.nodes[n].size) for n in self.s.nodes_of[uid]])
        if uid in self.prepared.given:
            return self._given(self.prepared.given[uid])
        owners = self.prepared.results.get(uid, ())
        if not owners:
            return self._reduction(event) if event.barrier is not None else Vector(literal(0, 1), 1, FALSE)
        if len(owners) > 1:
            raise Unsupported("a result that several choices give")
        k = owners[0]
        given = [
            (self.selectors[k][o], dict(x.results).get(uid)) for o, x in enumerate(self.prepared.choices[k].options)
        ]
        bits = max((v.bit_length() for _, v in given if v is not None), default=0) + 1
        known = self.clauses.any_of([x for x, v in given if v is not None], Side.EXACT)
        name = self._variable(bits)
        for x, v in given:
            if v is not None:
                self.lines.append(f"(assert (=> {spell(x)} (= {name} {literal(v, bits)})))")
        return Vector(name, bits, known)

    def _given(self, given: dict[int, int] | Token) -> Vector:
        """The result that an open choice gives an event."""
        if isinstance(given, dict):
            known = self.clauses.any_of(given.values(), Side.EXACT)
            return Vector(self._let(f"(ite {spell(given[1])} #b01 #b00)", 2), 2, known)
        bits = TOKEN_BITS + 1
        parts = [literal(given.low.constant + given.constant, bits)]
        parts += [f"(ite {spell(x)} {literal(w, bits)} {literal(0, bits)})" for x, w in given.low.weights]
        parts += [f"(ite {spell(x)} {literal(1 << given.shift, bits)} {literal(0, bits)})" for x in given.phases]
        return Vector(self._let(f"(bvadd {literal(0, bits)} {' '.join(parts)})", bits), bits, given.known)

    def _reduction(self, event: Event) -> Vector:
        """The result of bar.red: the predicates of all arrivals of its generation, counted or combined."""
        if isinstance(event.op, Collective):
            raise Unsupported(f"the value that {event.op.op.partition('.')[0]}.sync returns", event.op.span)
        here = self.s.nodes_of[event.uid][0]
        arrived: list[tuple[int, Vector]] = []
        for k, (choice, selectors) in enumerate(zip(self.prepared.choices, self.selectors, strict=True)):
            if k in self.prepared.open:
                encoding = self.prepared.open[k]
                met = [(a, b) for name in ("barrier", "syncbar") for a, b in encoding.may(name) if b == here]
                arrived += [(encoding.literal("barrier", a, b), self.vector_of(self.s.nodes[a].value)) for a, b in met]
            elif choice.kind == "barrier":
                for option, x in zip(choice.options, selectors, strict=True):
                    for _, pairs in option.edges:
                        arrived += [(x, self.vector_of(self.s.nodes[a].value)) for a, b in pairs if b == here]
        known = self.clauses.all_of([self.clauses.any_of((-x, v.known), Side.EXACT) for x, v in arrived], Side.EXACT)
        bits = len(arrived).bit_length() + 1
        one, zero = literal(1, bits), literal(0, bits)
        match getattr(event.op, "red_op", None):
            case "popc":
                terms = [f"(ite (and {spell(x)} {self.is_nonzero(v)}) {one} {zero})" for x, v in arrived]
                return Vector(self._let(f"(bvadd {zero} {' '.join([zero, *terms])})", bits), bits, known)
            case "and":
                parts = [f"(or (not {spell(x)}) {self.is_nonzero(v)})" for x, v in arrived]
                return self.from_boolean(f"(and true {' '.join(parts)})", known)
            case "or":
                parts = [f"(and {spell(x)} {self.is_nonzero(v)})" for x, v in arrived]
                return self.from_boolean(f"(or false {' '.join(parts)})", known)
        return Vector(literal(0, 1), 1, FALSE)

    def _joined(self, parts: list[tuple[Vector, int]]) -> Vector:
        """The concatenation of bytes, the first lowest."""
        texts = [self.widen(v, 8 * size) for v, size in parts]
        bits = sum(8 * size for _, size in parts)
        text = f"(concat #b0 {' '.join(reversed(texts))})"
        return Vector(self._let(text, bits + 1), bits + 1, self.all_known(*(v for v, _ in parts)))

    def piece(self, term: Term, offset: int, size: int) -> Vector:
        """Some bytes of a term, which may be known although other bytes are not."""
        if isinstance(term, int):
            return constant((term >> (8 * offset)) & ((1 << (8 * size)) - 1))
        key = (term, offset, size)
        found = self.pieces.get(key)
        if found is None:
            found = self.pieces[key] = self._piece(term, offset, size)
        return found

    def _piece(self, term: tuple, offset: int, size: int) -> Vector:  # type: ignore[type-arg]
        parts: list[tuple[Vector, int]] = []
        if term[0] == "e" and self.s.events[term[1]].size:
            for n in self.s.nodes_of[term[1]]:
                node = self.s.nodes[n]
                low, high = max(node.offset, offset), min(node.offset + node.size, offset + size)
                if low < high:
                    parts.append((self._bytes(self.read_result(n), low - node.offset, high - low), high - low))
            return self._joined(parts)
        if term[0] == "slice":
            return self.piece(term[1], term[2] + offset, size)
        if term[0] == "cat":
            start = 0
            for inner, bytes_ in term[1]:
                low, high = max(start, offset), min(start + bytes_, offset + size)
                if low < high:
                    parts.append((self.piece(inner, low - start, high - low), high - low))
                start += bytes_
            return self._joined(parts)
        return self._bytes(self.vector_of(term), offset, size)

    def _bytes(self, v: Vector, offset: int, size: int) -> Vector:
        if not offset:
            return self.unsigned(v, 8 * size)
        top = 8 * (offset + size)
        text = f"((_ extract {top - 1} {8 * offset}) {self.widen(v, max(top, v.bits))})"
        return Vector(self._let(f"(concat #b0 {text})", 8 * size + 1), 8 * size + 1, v.known)

    def final_value(self, pieces: list[tuple[int, int, int]]) -> Vector:
        """The final raw value of some bytes, from (chunk, offset into it, length) pieces."""
        parts = []
        for address, offset, size in pieces:
            k = self.finals[address]
            known = self.clauses.new()
            v = Vector(self._variable(8 * size + 1), 8 * size + 1, known)
            for o, option in enumerate(self.prepared.choices[k].options):
                self._equal(v, self.write_result(option.source, offset, size), self.selectors[k][o])
            parts.append((v, size))
        return self._joined(parts)

    # --- terms ------------------------------------------------------------------------------------------------

    def vector_of(self, term: Term) -> Vector:
        """The vector of a term."""
        if isinstance(term, int):
            return constant(term)
        found = self.terms.get(term)
        if found is None:
            found = self.terms[term] = self._of(term)
        return found

    def _of(self, term: tuple) -> Vector:  # type: ignore[type-arg]
        match term:
            case ("e", uid):
                return self.event_result(uid)
            case ("?", _):
                return Vector(literal(0, 1), 1, FALSE)
            case ("typed", type_name, a):
                return self.signed(self.vector_of(a), 8 * type_size(type_name))
            case ("raw", size, a):
                return self.unsigned(self.vector_of(a), 8 * size)
            case ("cat", parts):
                return self._joined([(self.vector_of(a), size) for a, size in parts])
            case ("slice", a, offset, size):
                return self.piece(a, offset, size)
            case ("u", op, a):
                return self._unary(op, self.vector_of(a))
            case ("x", op, a, b):
                return self._binary(term, op, a, b)
            case ("alu", op, type_name, src_type, args, k):
                return self._alu(term, op, type_name, src_type, [self.vector_of(a) for a in args], args, k)
            case ("rmw", op, type_name, old, operands):
                return self._rmw(term, op, type_name, old, operands)
            case ("map", _, old, value, _):
                return self._guess(term, 8 * 128 + 1, (old, value))
        raise TypeError(term[0])

    def _guess(self, term: Term, bits: int, arguments: tuple[Term, ...]) -> Vector:
        vectors = [self.vector_of(a) for a in arguments]
        found = Vector(self._variable(bits), bits, self.all_known(*vectors))
        self.guesses.append(Guess(term, found, tuple(zip(arguments, vectors, strict=True))))
        return found

    def _unary(self, op: str, a: Vector) -> Vector:
        bits = a.bits + 1
        x = self.widen(a, bits)
        match op:
            case "-":
                return Vector(self._let(f"(bvneg {x})", bits), bits, a.known)
            case "~":
                return Vector(self._let(f"(bvnot {x})", bits), bits, a.known)
            case "!":
                return self.from_boolean(f"(not {self.is_nonzero(a)})", a.known)
        return a

    def _binary(self, term: Term, op: str, left: Term, right: Term) -> Vector:
        a, b = self.vector_of(left), self.vector_of(right)
        known = self.all_known(a, b)
        if op in ("==", "!=", "<", "<=", ">", ">="):
            return self.from_boolean(self.compare(op, a, b), known)
        if op in ("&&", "||"):
            name = "and" if op == "&&" else "or"
            return self.from_boolean(f"({name} {self.is_nonzero(a)} {self.is_nonzero(b)})", known)
        if op == "<<" and isinstance(right, int):
            bits = a.bits + right
            return Vector(self._let(f"(bvshl {self.widen(a, bits)} {literal(right, bits)})", bits), bits, known)
        if op == ">>":
            bits = max(a.bits, b.bits)
            return Vector(self._let(f"(bvashr {self.widen(a, bits)} {self.widen(b, bits)})", bits), bits, known)
        if op in ARITHMETIC:
            return self._arithmetic(op, a, b, known)
        return self._guess(term, a.bits + 64, (left, right))

    def _arithmetic(self, op: str, a: Vector, b: Vector, known: int) -> Vector:
        name, wider = ARITHMETIC[op]
        bits = a.bits + b.bits if op == "*" else max(a.bits, b.bits) + wider
        text = f"({name} {self.widen(a, bits)} {self.widen(b, bits)})"
        if op in ("/", "%"):
            known = self.clauses.all_of([known, self._literal(self.is_nonzero(b))], Side.EXACT)
        return Vector(self._let(text, bits), bits, known)

    def _saturated(self, type_name: str, v: Vector) -> Vector:
        least, greatest = map(constant, bounds(type_name))
        bits = max(v.bits, least.bits, greatest.bits)
        x, low, high = (self.widen(u, bits) for u in (v, least, greatest))
        text = f"(ite (bvslt {x} {low}) {low} (ite (bvsgt {x} {high}) {high} {x}))"
        return Vector(self._let(text, bits), bits, v.known)

    def _alu(
        self,
        term: Term,
        op: str,
        type_name: str,
        src_type: str | None,
        raw: list[Vector],
        arguments: tuple[Term, ...],
        k: int,
    ) -> Vector:
        name, _, mode = op.partition(".")
        known = self.all_known(*raw)
        if name == "setp":
            return self._setp(mode, type_name, raw, k, known)
        if name == "cvt":
            source = self.wrap(src_type or type_name, raw[0])
            return self._saturated(type_name, source) if mode == "sat" else self.wrap(type_name, source)
        if name == "selp":
            a, b = (self.wrap(type_name, v) for v in raw[:2])
            return Vector(self._let(f"(ite {self.is_nonzero(raw[2])} {a.text} {b.text})", a.bits), a.bits, known)
        if name in ("mul", "mad") and mode in ("lo", "wide", "hi"):
            return self._multiply(mode, type_name, raw, known)
        if name in ("shl", "shr"):
            return self._shift(name, type_name, raw, known)
        values = [self.wrap(type_name, v) for v in raw]
        found = self._plain(name, values, known)
        if found is None:
            return self._guess(term, width(type_name) + 1, arguments)
        return self._saturated(type_name, found) if mode == "sat" else self.wrap(type_name, found)

    def _plain(self, name: str, v: list[Vector], known: int) -> Vector | None:
        match name:
            case "mov" | "cvta":
                return v[0]
            case "add" | "sub" | "and" | "or" | "xor":
                return self._arithmetic(SYMBOLS[name], v[0], v[1], known)
            case "not":
                return self._unary("~", v[0])
            case "neg":
                return self._unary("-", v[0])
            case "abs":
                n = self._unary("-", v[0])
                negative = f"(bvslt {v[0].text} {literal(0, v[0].bits)})"
                return Vector(self._let(f"(ite {negative} {n.text} {self.widen(v[0], n.bits)})", n.bits), n.bits, known)
            case "min" | "max":
                smaller = self.compare("<", v[0], v[1])
                x, y = (v[0], v[1]) if name == "min" else (v[1], v[0])
                return Vector(self._let(f"(ite {smaller} {x.text} {y.text})", v[0].bits), v[0].bits, known)
            case "div" | "rem":
                return self._arithmetic("/" if name == "div" else "%", v[0], v[1], known)
        return None

    def _setp(self, mode: str, type_name: str, raw: list[Vector], k: int, known: int) -> Vector:
        comparison, _, combine = mode.partition(".")
        a, b = (self.wrap(type_name, v) for v in raw[:2])
        text = self.compare(COMPARISONS[comparison], a, b)
        if k:
            text = f"(not {text})"
        if combine:
            text = f"({combine} {text} {self.is_nonzero(raw[2])})"
        return self.from_boolean(text, known)

    def _multiply(self, mode: str, type_name: str, raw: list[Vector], known: int) -> Vector:
        a, b = (self.wrap(type_name, v) for v in raw[:2])
        out = self._arithmetic("*", a, b, known)
        result = WIDER[type_name] if mode == "wide" else type_name
        if mode == "hi":
            shift = literal(width(type_name), out.bits)
            out = Vector(self._let(f"(bvashr {out.text} {shift})", out.bits), out.bits, known)
        if len(raw) > 2:
            out = self._arithmetic("+", out, self.wrap(result, raw[2]), known)
        return self.wrap(result, out)

    def _shift(self, name: str, type_name: str, raw: list[Vector], known: int) -> Vector:
        value, amount = self.wrap(type_name, raw[0]), self.unsigned(raw[1], 32)
        places = width(type_name)
        bits = max(2 * places + 2, amount.bits) if name == "shl" else max(value.bits, amount.bits)
        most = literal(places, bits)
        x = self.widen(amount, bits)
        clamped = f"(ite (bvsgt {x} {most}) {most} {x})"
        operator = "bvshl" if name == "shl" else "bvashr"
        out = Vector(self._let(f"({operator} {self.widen(value, bits)} {clamped})", bits), bits, known)
        return self.wrap(type_name, out)

    def _rmw(self, term: Term, op: str, type_name: str, old: Term, operands: tuple[Term, ...]) -> Vector:
        bits = 8 * type_size(type_name)
        if op in ("cas", "add", "sub", "mul", "div", "and", "or", "xor", "min", "max") and is_integer(type_name):
            before = self.vector_of(old)
            given = [self.vector_of(a) for a in operands]
            known = self.all_known(before, *given)
            if op == "cas":
                compare, new = (self.unsigned(v, bits) for v in given[:2])
                x = self.widen(before, bits + 1)
                return Vector(self._let(f"(ite (= {x} {compare.text}) {new.text} {x})", bits + 1), bits + 1, known)
            type_of = self.signed if type_name[0] == "s" else self.unsigned
            a, b = type_of(before, bits), type_of(given[0], bits)
            plain = self._arithmetic("*", a, b, known) if op == "mul" else self._plain(op, [a, b], known)
            assert plain is not None
            return self.unsigned(plain, bits)
        return self._guess(term, bits + 1, (old, *operands))


ARITHMETIC: dict[str, tuple[str, int]] = {
    "+": ("bvadd", 1),
    "-": ("bvsub", 1),
    "*": ("bvmul", 0),
    "/": ("bvsdiv", 1),
    "%": ("bvsrem", 1),
    "&": ("bvand", 0),
    "|": ("bvor", 0),
    "^": ("bvxor", 0),
}
SYMBOLS = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}
WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
COMPARISONS = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
