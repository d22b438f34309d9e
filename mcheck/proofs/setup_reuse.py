"""The set-up of a program whose threads do nothing that those of another one, which is set up, do not do as well.

What is read off a program as a whole (``mcheck.engines.protocol.execution.setup``) says which operations there are
somewhere: that some register decides something, that some object is written, that an order matters. With fewer
operations less of it may be so, and to take it for so is to look at more than has to be looked at. So what is known of
the one program serves for the other; what is read off the places in a thread's code is read off anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mcheck.effects.site import layout_of
from mcheck.engines.protocol.analysis.lane_groups import CodeComparison
from mcheck.engines.protocol.execution.setup import Setup, read_code
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread


@dataclass(slots=True)
class SetupReuse:
    """Sets up programs that do nothing that the ``whole`` one does not do."""

    whole: Setup
    _does: dict[int, frozenset[Op]] = field(default_factory=dict)
    """What the threads do, as far as somebody has asked."""
    _alike: CodeComparison = field(default_factory=CodeComparison)

    def setup(self, program: Program) -> Setup | None:
        """The program as the engine runs it; ``None`` if it is none of these."""
        whole = self.whole
        if not self._fits(program):
            return None
        out = replace(
            whole, program=program, layout=layout_of(program), footprints={}, combined_accesses={}, copy_accesses={},
            loop_heads={}, tail_places=[],
            spin_waits={}, carried_registers={}, facts_by_agent={}, last_fence=[],
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
        """Whether the threads of an agent do nothing new, and run as one as they do in the whole program."""
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
        """How many operations a thread begins with as it does in the whole program."""
        known = self.whole.program.threads[thread.index].code
        pairs = enumerate(zip(thread.code, known, strict=False))
        return next((k for k, (x, y) in pairs if x is not y and x != y), min(len(thread.code), len(known)))

    def _done_by(self, thread: int) -> frozenset[Op]:
        found = self._does.get(thread)
        if found is None:
            found = self._does[thread] = frozenset(self.whole.program.threads[thread].code)
        return found
