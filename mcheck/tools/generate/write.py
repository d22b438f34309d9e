"""Writing a layout as a litmus test in block form.

The threads execute the cycle. Before it they initialise mbarriers and shared memory, with a barrier if other threads
use them; after it they wait for every copy, so that none outlives its CTA.
"""

from __future__ import annotations

from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.tools.generate.alphabet import Arc
from mcheck.tools.generate.layout import Copy, Layout, Location, Node, NoTest, handover_step
from mcheck.tools.generate.operands import fill_placeholders

SIZE = 16
_GROUP_WAITS = {"bulk": "cp.async.bulk.wait_group", "cp.async": "cp.async.wait_group"}


@dataclass(slots=True)
class Writer:
    """The code of each thread under construction."""

    layout: Layout
    code: list[list[str]] = field(default_factory=list)
    registers: list[int] = field(default_factory=list)
    condition: list[str] = field(default_factory=list)
    mbarriers: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    labelled: set[int] = field(default_factory=set)

    def text(self, name: str, notes: list[str], expects: list[str]) -> str:
        """The text of the test; ``notes`` are quoted lines, ``expects`` the lines after the condition."""
        layout = self.layout
        head = [f"PTX {name}", *(f'"{note}"' for note in notes), "{", *(f"  {d}" for d in self.declarations()), "}"]
        for thread, lines in enumerate(self.code):
            head += [f"P{thread}@{self.placement(thread)} {{", *(f"  {line}" for line in self.prologue(thread) + lines)]
            head += [*(f"  {line}" for line in self.epilogue(thread)), "}"]
        terms = [*self.condition]
        for location in layout.locations:
            if location.final is not None:
                terms.append(f"{self.final_term(location)} == {location.final}")
        asked = " /\\ ".join(terms)
        return "\n".join([*head, f"exists ({asked})", *expects, ""])

    def write_cycle(self) -> None:
        """Write the code along the cycle."""
        layout = self.layout
        self.code = [[] for _ in range(layout.threads)]
        self.registers = [0] * layout.threads
        arcs, nodes = layout.arcs, layout.nodes
        self.labelled = set()
        last: dict[int, str] = {}
        # The last edge returns to the first thread: its half there precedes everything else.
        self.write_edge(arcs[-1], nodes[-1], nodes[0], half="target")
        for n, (arc, node) in enumerate(zip(arcs, nodes, strict=True)):
            if node.end.kind in ("R", "W"):
                last[n] = self.write_access(node, arcs[n - 1], last.get(n - 1, ""), nodes[n - 1])
            wrapped = n == len(arcs) - 1
            self.write_edge(arc, node, nodes[(n + 1) % len(nodes)], half="source" if wrapped else "both")

    # --- steps ------------------------------------------------------------------------------------------------

    def write_edge(self, arc: Arc, source: Node, target: Node, half: str) -> None:
        """Write the steps of an edge; for the edge that closes the cycle, only those of the ``half`` at one end."""
        here, there = half in ("both", "source"), half in ("both", "target")
        current = source.thread
        passed = False
        step_of = handover_step(arc)
        for step in arc.edge.path:
            if step == step_of and step:
                self.hand_over(step, source, target, here=here, there=there)
                current, passed = target.thread, True
                continue
            if not (there if passed or (not step_of and arc.edge.far) else here):
                continue
            if step == "issue":
                assert target.copy is not None
                self.issue_copy(target.copy)
            elif step.startswith("wait"):
                assert source.copy is not None
                self.code[current] += self.wait(source.copy, step)
            elif step not in ("addr", "data", "ctrl"):
                self.code[current].append(f"{step.rstrip(';')};")
        if target.copy is not None and arc.communicates and there:
            self.issue_copy(target.copy)

    def hand_over(self, step: str, source: Node, target: Node, *, here: bool, there: bool) -> None:
        a, b = self.code[source.thread], self.code[target.thread]
        if step in ("bar", "bar.arrive"):
            number = self.counter(f"bar{source.thread},{target.thread}", "bar") + 1
            if here:
                a.append(f"{'bar.arrive' if step == 'bar.arrive' else 'bar.sync'} {number}, 64;")
            if there:
                b.append(f"bar.sync {number}, 64;")
        elif step.startswith("mbar"):
            self.hand_over_by_mbarrier(step, source, target, here=here, there=there)
        elif step.startswith("cluster"):
            relaxed = ".relaxed" if step.endswith("relaxed") else ""
            for code, wanted in ((a, here), (b, there)):
                if wanted:
                    code += [f"barrier.cluster.arrive{relaxed};", "barrier.cluster.wait;"]
        elif step == "wait.elsewhere" and there:
            assert source.copy is not None
            b += self.wait(source.copy, "wait")

    def hand_over_by_mbarrier(self, step: str, source: Node, target: Node, *, here: bool, there: bool) -> None:
        name = f"h{self.counter(f'mbar{source.thread},{target.thread}', 'mbar')}"
        owner = self.layout.cta(target.thread)
        self.mbarriers[name] = owner
        if here:
            if step == "mbar.cluster":
                where = f"{name}@{self.layout.rank(owner)}"
                line = f"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [{where}];"
            else:
                relaxed = ".relaxed.cta" if step.endswith("relaxed") else ""
                line = f"mbarrier.arrive{relaxed}.shared::cta.b64 _, [{name}];"
            self.code[source.thread].append(line)
        if there:
            order = {"mbar.relaxed": ".relaxed.cta", "mbar.cluster": ".acquire.cluster"}.get(step, "")
            self.code[target.thread].append(f"await mbarrier.try_wait.parity{order}.shared::cta.b64 [{name}], 0;")

    def counter(self, key: str, kind: str) -> int:
        """The number of a barrier, the same for both halves of an edge by their common key."""
        if key not in self.counters:
            self.counters[key] = sum(k.startswith(kind) for k in self.counters)
        return self.counters[key]

    def issue_copy(self, copy: Copy) -> None:
        """Write the copy, the expect-tx of its bytes and the commit of its group."""
        kind, code = copy.kind, self.code[copy.home]
        names = {"src": "", "dst": "", "bar": f"m{copy.number}", "map": f"t{copy.number}", "value": str(copy.value)}
        home = self.layout.cta(copy.home)
        if copy.source is not None:
            names["src"] = copy.source.name
        assert copy.target is not None
        if kind.target == "peer":
            rank = self.layout.rank(copy.owner)
            names["dst"], names["bar"] = f"{copy.target.name}@{rank}", f"m{copy.number}@{rank}"
            names["mask"] = str(1 << rank)
        else:
            names["dst"] = copy.target.name
        names["plain"], names["plainbar"] = copy.target.name, f"m{copy.number}"
        if kind.signal == "mbarrier":
            self.mbarriers[f"m{copy.number}"] = copy.owner
            if kind.expect and copy.owner == home:
                size = 4 if kind.source == "register" else SIZE
                code.append(f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [m{copy.number}], {size};")
        code += [f"{fill_placeholders(line.strip(), names)};" for line in kind.code.split(";") if line.strip()]
        if kind.signal == "bulk":
            code.append("cp.async.bulk.commit_group;")
        elif kind.signal == "cp.async":
            code.append("cp.async.commit_group;")

    def wait(self, copy: Copy, step: str) -> list[str]:
        """The wait for a copy, by its completion mechanism."""
        if copy.kind.signal == "mbarrier":
            order = ".relaxed.cta" if step == "wait.relaxed" else ""
            return [f"await mbarrier.try_wait.parity{order}.shared::cta.b64 [m{copy.number}], 0;"]
        read = ".read" if step == "wait.read" else ""
        return [f"{_GROUP_WAITS[copy.kind.signal]}{read} 0;"]

    # --- accesses ---------------------------------------------------------------------------------------------

    def operand_of(self, location: Location, thread: int) -> tuple[str, str]:
        """The state space and the operand of an access by a thread."""
        if location.space == "global":
            return "global", location.name
        if self.layout.cta(thread) == location.owner:
            return "shared", location.name
        return "shared::cluster", f"{location.name}@{self.layout.rank(location.owner)}"

    def write_access(self, node: Node, before: Arc, register: str, source: Node) -> str:
        """Write a load or a store; returns the register of a load."""
        code = self.code[node.thread]
        order = self.layout.alphabet.annotations[node.end.note]
        space, operand = self.operand_of(node.location, node.thread)
        qualifiers = ".".join(x for x in (order, space, "u32") if x)
        value = str(node.value)
        dependency = next((s for s in before.edge.path if s in ("addr", "data", "ctrl")), "")
        if dependency and register:
            operand, value = self.write_dependency(dependency, node, register, source, operand, value)
        if node.end.kind == "W":
            code.append(f"st.{qualifiers} [{operand}], {value};")
            return ""
        mine = f"r{self.registers[node.thread]}"
        self.registers[node.thread] += 1
        code.append(f"ld.{qualifiers} {mine}, [{operand}];")
        if node.value is not None:
            self.condition.append(f"P{node.thread}:{mine} == {node.value}")
        return mine

    def write_dependency(
        self, dependency: str, node: Node, register: str, source: Node, operand: str, value: str
    ) -> tuple[str, str]:
        """Write a dependency that no assembler folds: the value read determines the address, the data or a branch."""
        code = self.code[node.thread]
        expected = source.value or 0
        fresh = 10 + len(code)
        if dependency == "data":
            code.append(f"add.u32 r{fresh}, {register}, {(node.value or 0) - expected};")
            return operand, f"r{fresh}"
        if dependency == "addr":
            node.location.wide = True
            code += [
                f"setp.ne.u32 %p{fresh}, {register}, {expected};",
                f"selp.u32 r{fresh}, 4, 0, %p{fresh};",
                f"cvt.u64.u32 %rd{fresh}, r{fresh};",
                f"add.u64 %rd{fresh}, %rd{fresh}, {operand};",
            ]
            return f"%rd{fresh}", value
        code += [f"setp.ne.u32 %p{fresh}, {register}, {expected};", f"@%p{fresh} bra END;"]
        self.labelled.add(node.thread)
        return operand, value

    # --- around the cycle ----------------------------------------------------------------------------------------

    def placement(self, thread: int) -> str:
        gpu, cluster, rank = self.layout.ctas[thread]
        where = f"cluster {cluster}, cta {rank}" if self.layout.clustered else f"cta {self.layout.cta(thread)}"
        return f"gpu {gpu}, {where}" if any(g for g, _, _ in self.layout.ctas) else where

    def declarations(self) -> list[str]:
        lines = []
        for location in self.layout.locations:
            align = 128 if location.mapped and location.space == "shared" else 16
            shape, init = "", ""
            if location.wide:
                shape = "[4]"
            if location.space == "global" and location.init:
                init = f" = {{{', '.join([str(location.init)] * 4)}}}" if location.wide else f" = {location.init}"
            aligned = f".align {align} " if location.wide else ""
            lines.append(f".{location.space} {aligned}.u32 {location.name}{shape}{init};")
        for copy in self.layout.copies:
            if copy.kind.map:
                mapped = copy.source if copy.kind.map == "source" else copy.target
                assert mapped is not None
                lines.append(
                    f".global .tensormap t{copy.number} = {{ global_address = {mapped.name}, elemtype = u32, "
                    "rank = 1, global_dim = {4}, global_stride = {}, box_dim = {4}, element_stride = {1}, "
                    "interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B, fill_mode = zero };"
                )
        lines += [f".shared .align 8 .b64 {name};" for name in sorted(self.mbarriers)]
        return lines

    def is_first_in_cta(self, thread: int) -> bool:
        """Whether a thread is the first of its CTA, which initialises shared memory."""
        cta = self.layout.cta(thread)
        return all(self.layout.cta(t) != cta for t in range(thread))

    def prologue(self, thread: int) -> list[str]:
        layout = self.layout
        cta = layout.cta(thread)
        lines = []
        shared = [x for x in layout.locations if x.space == "shared"]
        if self.is_first_in_cta(thread):
            for name, owner in sorted(self.mbarriers.items()):
                if owner == cta:
                    lines.append(f"mbarrier.init.shared::cta.b64 [{name}], 1;")
                    copy = next((c for c in layout.copies if f"m{c.number}" == name), None)
                    if copy is not None and copy.kind.expect and layout.cta(copy.home) != copy.owner:
                        size = 4 if copy.kind.source == "register" else SIZE
                        lines.append(f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [{name}], {size};")
            lines += [f"st.shared.u32 [{x.name}], {x.init};" for x in shared if x.owner == cta]
            if layout.copies and any(x.owner == cta for x in shared):
                lines.append("fence.proxy.async;")
        here = [t for t in range(layout.threads) if layout.cta(t) == cta]
        prepared = any(x.owner == cta for x in shared) or cta in self.mbarriers.values()
        if layout.clustered and (shared or self.mbarriers):
            lines += ["fence.mbarrier_init.release.cluster;"] if self.mbarriers and self.is_first_in_cta(thread) else []
            lines += ["barrier.cluster.arrive;", "barrier.cluster.wait;"]
        elif prepared and len(here) > 1:
            lines.append("bar.sync 0;")
        return lines

    def epilogue(self, thread: int) -> list[str]:
        layout = self.layout
        lines = ["END:"] if thread in self.labelled else []
        for copy in layout.copies:
            if copy.kind.signal == "mbarrier":
                waiter = next((t for t in range(layout.threads) if layout.cta(t) == copy.owner), None)
                waiter = copy.home if layout.cta(copy.home) == copy.owner else waiter
                if waiter == thread:
                    lines += self.wait(copy, "wait")
            elif copy.home == thread:
                lines += self.wait(copy, "wait")
        if (layout.clustered and any(x.space == "shared" for x in layout.locations)) or (
            layout.clustered and self.mbarriers
        ):
            lines += ["barrier.cluster.arrive;", "barrier.cluster.wait;"]
        return list(dict.fromkeys(lines)) if lines[:1] != ["END:"] else lines

    def final_term(self, location: Location) -> str:
        name = f"{location.name}[0]" if location.wide else location.name
        if location.space == "shared" and (self.layout.clustered or location.owner):
            return f"{name}@{self.layout.rank(location.owner)}"
        return name


def write(layout: Layout, name: str, notes: list[str], expects: list[str]) -> str:
    """The litmus test of a layout."""
    writer = Writer(layout)
    writer.write_cycle()
    if not writer.condition and all(x.final is None for x in layout.locations):
        raise NoTest("the cycle is not observable")
    return writer.text(name, notes, expects)
