"""Reuse of the setup of a program for programs that do nothing that it does not do.

The facts that are derived from a program as a whole (``mcheck.engines.protocol.execution.setup``) say which operations
exist somewhere: that a register matters, that an object is written, that an order matters. With fewer operations fewer
of them may hold, and to assume them is only to explore more than necessary. So the facts about the one program serve
for the other; what is derived from positions in a thread's code is derived anew.
"""

from __future__ import annotations

from dataclasses import field

from mcheck.base.records import dataclass, replace
from mcheck.effects.site import layout_of
from mcheck.engines.protocol.analysis.lane_groups import CodeComparison
from mcheck.engines.protocol.execution.setup import Setup, read_code
from mcheck.engines.protocol.passes import Pass
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread


@dataclass(slots=True)
class SetupReuse:
    """Setups of programs that do nothing that the ``whole`` program does not do."""

    whole: Setup
    _does: dict[int, frozenset[Op]] = field(default_factory=dict)
    """The operations of the threads, as far as they have been needed."""
    _alike: CodeComparison = field(default_factory=CodeComparison)

    def setup(self, program: Program) -> Setup | None:
        """Return the setup of a program; ``None`` if it does more than the whole one."""
        whole = self.whole
        if Pass.SETUP_REUSE not in whole.passes or not self._fits(program):
            return None
        out = replace(
            whole, program=program, layout=layout_of(program), footprints={}, combined_accesses={}, copy_accesses={},
            loop_heads={}, tail_places=[],
            spin_waits={}, carried_registers={}, facts_by_agent={}, warpgroups={}, last_fence=[],
        )  # fmt: skip
        read_code(out)
        return out

    def _fits(self, program: Program) -> bool:
        known = self.whole.program
        if (known.dialect, known.clustered, len(known.threads)) != (program.dialect, program.clustered,
                                                                    len(program.threads)):  # fmt: skip
            return False
        if [(i.base, i.physical, i.cta) for i in known.memory.instances] != [
            (i.base, i.physical, i.cta) for i in program.memory.instances
        ]:
            return False
        return all(self._group_fits(program, group) for group in self.whole.partition)

    def _group_fits(self, program: Program, group: tuple[int, ...]) -> bool:
        """Return whether the threads of an agent do nothing new, and may be grouped as in the whole program."""
        lead = program.threads[group[0]]
        same = self._same(lead)
        for t in group:
            thread, known = program.threads[t], self.whole.program.threads[t]
            if (thread.place, thread.init, thread.types) != (known.place, known.init, known.types):
                return False
            if len(thread.code) != len(lead.code) or thread.labels != lead.labels:
                return False
            if thread.code[:same] != known.code[:same]:
                return False
            rest = thread.code[same:]
            if not all(isinstance(op, ops.Label) or op in self._done_by(t) for op in rest):
                return False
            if not all(x is y or self._alike.same_op(x, y) for x, y in zip(lead.code[same:], rest, strict=True)):
                return False
        return True

    def _same(self, thread: Thread) -> int:
        """Return the length of the code prefix that a thread shares with its counterpart in the whole program."""
        known = self.whole.program.threads[thread.index].code
        pairs = enumerate(zip(thread.code, known, strict=False))
        return next((k for k, (x, y) in pairs if x is not y and x != y), min(len(thread.code), len(known)))

    def _done_by(self, thread: int) -> frozenset[Op]:
        found = self._does.get(thread)
        if found is None:
            found = self._does[thread] = frozenset(self.whole.program.threads[thread].code)
        return found
