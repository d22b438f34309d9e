"""Binding of a condition: its words to registers of threads and bytes of objects."""

from __future__ import annotations

from collections.abc import Mapping

from mcheck.base.errors import Span
from mcheck.base.records import replace
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.conditions import Atom, Group, MemWord, RegWord, Tree, Word
from mcheck.frontend.litmus.placement import Grid
from mcheck.frontend.litmus.ranges import explain_misfit, register_types
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.thread_values import Addresses
from mcheck.ir.condition import And, Compare, ConstTerm, Formula, MemTerm, Not, Notation, Or, RegTerm, Term, Truth
from mcheck.ir.expr import Const, Expr
from mcheck.ir.memory import Cta, MemObject, MemoryMap
from mcheck.ir.program import Thread

MAX_LISTED = 256


class ConditionBinder:
    """Binds the words of conditions to threads and addresses."""

    def __init__(
        self, scope: Scope, memory: MemoryMap, addresses: Addresses, threads: tuple[Thread, ...], grid: Grid,
        dialect: bool, written: Mapping[str, frozenset[str]],
    ) -> None:  # fmt: skip
        self._scope = scope
        self._memory = memory
        self._addresses = addresses
        self._grid = grid
        self._dialect = dialect
        self._threads = threads
        self._by_role: dict[str, list[Thread]] = {}
        for thread in threads:
            self._by_role.setdefault(thread.role, []).append(thread)
        self._terms: dict[tuple[object, ...], Term] = {}
        self._written = written
        self.warnings: list[tuple[str, Span | None]] = []
        self.notation: dict[str, Notation] = {}

    def formula(self, tree: Tree) -> Formula:
        if isinstance(tree, Atom):
            left, right = self.term(tree.left, left=True), self.term(tree.right, left=False)
            self._check_range(tree.left, left, tree.right, right)
            self._note(tree, left, right)
            return Compare(tree.op, left, right)
        return self._group(tree)

    def _note(self, tree: Atom, left: Term, right: Term) -> None:
        """Record how the condition writes a term: as at its first occurrence; in hexadecimal if compared so."""
        if isinstance(left, ConstTerm):
            return
        name = tree.name.strip("[]") if isinstance(tree.left, MemWord) and tree.left.bracketed else tree.name
        known = self.notation.get(left.label, Notation(name))
        if isinstance(right, ConstTerm) and tree.number.lower().startswith("0x"):
            known = replace(known, hexadecimal=True)
        self.notation[left.label] = known

    def _check_range(self, left: Word, first: Term, right: Word, second: Term) -> None:
        for constant, word, value, other in ((left, right, first, second), (right, left, second, first)):
            if isinstance(constant, Const) and not isinstance(word, Const):
                text = explain_misfit(value, other, self._types(other))
                if text is not None:
                    self.warnings.append((text, word.span))

    def _types(self, term: Term) -> frozenset[str]:
        if isinstance(term, RegTerm):
            return register_types(self._threads[term.thread], term.reg)
        return frozenset({term.type}) if isinstance(term, MemTerm) else frozenset()

    def _group(self, tree: Group) -> Formula:
        match tree.op:
            case "and":
                return And(tuple(self.formula(part) for part in tree.parts))
            case "or":
                return Or(tuple(self.formula(part) for part in tree.parts))
            case "not":
                return Not(self.formula(tree.parts[0]))
        return Truth(tree.op == "true")

    def term(self, word: Word, *, left: bool) -> Term:
        """The term of ``word``; a bare location on the right-hand side is its address."""
        match word:
            case Const():
                return ConstTerm(word.value)
            case RegWord():
                return self._register(word)
            case MemWord():
                if not left and not word.bracketed and not word.name.indices:
                    self._object(word)
                    cta = self._cta(word)
                    base = self._addresses.base(word.name.name, cta)
                    assert base is not None
                    return ConstTerm(base)
                return self._location(word)

    def listed(self, word: Word) -> list[Term]:
        """The terms of an entry of ``locations``; an array means all its elements."""
        if not isinstance(word, MemWord):
            return [self.term(word, left=True)]
        item = self._object(word)
        rest = item.dims[len(word.name.indices) :]
        count = 1
        for dim in rest:
            count *= dim
        if not rest or item.elem == "tensormap":
            return [self._location(word)]
        if count > MAX_LISTED:
            raise problem("LIT075", word.span, name=word.name.name, expected=f"at most {MAX_LISTED} elements")
        found: list[Term] = []
        for flat in range(count):
            indices: list[Expr] = []
            for dim in reversed(rest):
                indices.append(Const(flat % dim))
                flat //= dim
            name = replace(word.name, indices=(*word.name.indices, *reversed(indices)))
            found.append(self._location(MemWord(name, word.bracketed, word.span)))
        return found

    def _register(self, word: RegWord) -> Term:
        threads = self._by_role.get(word.role)
        if threads is None:
            there = ", ".join(list(self._by_role)[:8])
            hint = suggest(word.role, self._by_role)
            raise problem("LIT070", word.span, name=word.role, expected=f"one of {there}", hint=hint)
        number = word.number or 0
        if not 0 <= number < len(threads):
            raise problem("LIT071", word.span, name=word.role, count=len(threads), number=number)
        thread = threads[number]
        key = (thread.index, word.reg)
        term = self._terms.get(key)
        if term is None:
            self._check_written(word, thread)
            index = "" if word.number is None else f"[{word.number}]"
            term = self._terms[key] = RegTerm(thread.index, word.reg, f"{word.role}{index}:{word.reg}")
        return term

    def _check_written(self, word: RegWord, thread: Thread) -> None:
        # A register in a loop without iterations, or in a branch not taken, is a valid name all the same.
        registers = self._written[thread.role] | thread.init.keys()
        if word.reg in registers:
            return
        error = problem(
            "LIT073", word.span, reg=word.reg, thread=thread.name, expected="a register that the thread writes",
            hint=suggest(word.reg, registers),
        )  # fmt: skip
        if not self._dialect:
            raise error
        self.warnings.append((error.message, word.span))

    def _object(self, word: MemWord) -> MemObject:
        name = word.name.name
        item = self._scope.objects.get(name)
        if item is None:
            hint = suggest(name, self._scope.objects)
            if hint is None and name in self._by_role:
                hint = f"to name a register of {name}, write {name}:r0"
            raise problem("LIT072", word.span, name=name, expected="a declared location", hint=hint)
        return item

    def _cta(self, word: MemWord) -> Cta:
        """The CTA whose object is meant: by rank in its cluster, without clusters by its number in the grid."""
        name = word.name.name
        ctas = self._grid.ctas
        if not self._addresses.is_shared(name):
            return ctas[0]
        if word.name.rank is None:
            if len(ctas) > 1:
                text = f"{name} exists in {len(ctas)} CTAs; the condition reads {name}@0"
                self.warnings.append((text, word.span))
            return ctas[0]
        if not isinstance(word.name.rank, Const):
            raise problem("LIT016", word.span, what="a CTA rank in a condition")
        rank = word.name.rank.value
        for cta in ctas:
            if (cta.rank if self._grid.clustered else cta.cluster) == rank:
                return cta
        raise problem("LIT061", word.span, rank=rank)

    def _location(self, word: MemWord) -> Term:
        item = self._object(word)
        name = word.name
        cta = self._cta(word)
        base = self._addresses.base(name.name, cta)
        assert base is not None
        indices: list[int] = []
        for index in name.indices:
            if not isinstance(index, Const):
                raise problem("LIT016", word.span, what="an index in a condition")
            indices.append(index.value)
        dims = item.dims
        if not dims and indices == [0]:
            indices = []  # x[0] of a scalar, as the table dialect has it
        for value, dim in zip(indices, dims or (1,), strict=False):
            if not 0 <= value < dim:
                raise problem("LIT074", word.span, name=name.name, index=value, expected=f"0 to {dim - 1}")
        if len(indices) > len(dims):
            raise problem("LIT059", word.span, name=name.name, dims=len(dims), found=len(indices))
        if len(indices) < len(dims) or item.elem == "tensormap":
            element = name.name + "".join(f"[{index}]" for index in indices) + "[0]" * (len(dims) - len(indices))
            raise problem(
                "LIT075", word.span, name=name.name, expected="one element",
                hint=f"write {element}" if item.elem != "tensormap" else "a tensor map has no value to compare",
            )  # fmt: skip
        address = base
        for value, stride in zip(indices, self._addresses.strides.get(name.name, ()), strict=False):
            address += value * stride
        physical = self._memory.instance_of(name.name, cta)
        assert physical is not None
        address += physical.physical - physical.base
        label = name.name + "".join(f"[{index}]" for index in indices)
        if isinstance(name.rank, Const):
            label += f"@{name.rank.value}"
        key = (item.name, address)
        return self._terms.setdefault(key, MemTerm(address, item.elem_size, item.elem, label))
