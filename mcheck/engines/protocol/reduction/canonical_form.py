"""Canonical form of an execution's state: what later steps can distinguish, up to a renaming of events.

Two executions with equal forms continue alike: the same steps are enabled, with the same effect and the same findings,
and the same of them could be reversed. What is compared, and what not:

* Of the window, the events that a new edge may touch and the last one of each thread, in the order of their threads:
what the model asks of each (its sort), and every stored column, set and edge. Of all others, which kinds there are:
those of one thread and one sort that are in the same relations to these will be in the same relations to whatever
comes, which is why the window itself merges them (``mcheck.engines.protocol.incremental.indistinguishable``). Their
numbers make no difference. Nor does it which columns the window knows to be empty (``State.filled``): to visit one adds
nothing to a union.
* Times are compared with the steps that could still come after something later, the *live* operations on objects: a
time is, by agent, how many of them it covers. That is all it is ever used for, and joining two times preserves it.
* Of a tracked word, the latest writes, as many as anybody may still read.
* An operation that everybody is after, signals in flight included, is not live: none can come before it any more. Those
of the latest phases of an mbarrier are: where only time orders them before a test, another may come last.
* Phases count from the present one of their object, with its parity, and so do those of the states that arrives have
returned; of registers those that matter, unknown values being numbered by their first occurrence.
* Of copies whose completion will be observed together (``mcheck.engines.protocol.reduction.completion_classes``) it
matters which kinds there are; of loops that have been left for good nothing does
(``mcheck.engines.protocol.reduction.loop_memo``).
* What no later step depends on is left out: the trace, numbers of events, reported findings.

Places in the code are given by the caller, and so are objects that are used up as the rounds go
(``StreamedObject``). The declarations of the states say how each attribute is named, or why not
(``mcheck.base.declared_state``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import Setup
from mcheck.engines.protocol.reduction import object_forms as _registered  # noqa: F401 - registers its names
from mcheck.engines.protocol.reduction.agent_forms import AgentForm, build_agent_form
from mcheck.engines.protocol.reduction.derived_forms import Part, former_of
from mcheck.engines.protocol.reduction.event_merging import merge_events
from mcheck.engines.protocol.reduction.form_builder import FormBuilder
from mcheck.engines.protocol.state.address_names import AddressNames, StreamedObject
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.cyclic_names import UNROTATED, RotatedNames
from mcheck.engines.protocol.state.naming import AGENTS


class Form(NamedTuple):
    """The canonical form of an execution; forms are compared for equality only."""

    agents: tuple[AgentForm, ...]
    rest: Part


def normalise_window(m: Machine) -> None:
    """Merge all events that can be merged, and recompute what was gathered along the threads from events in forms."""
    merge_events(m, every=True)
    m.window.memo = {}


class Forms:
    """Comparable canonical forms of executions of programs that do nothing that the ``whole`` one does not do.

    With ``contents`` the contents of memory are part of them.
    """

    def __init__(self, whole: Setup, *, contents: bool = True) -> None:
        self._whole = whole
        self._contents = contents
        self._kinds: dict[object, int] = {}

    def build(
        self,
        m: Machine,
        place: Callable[[Agent], object],
        moving: Sequence[StreamedObject] = (),
        turned: RotatedNames = UNROTATED,
    ) -> Form:
        """Return the form of an execution between two steps, after ``normalise_window``.

        ``place`` gives the place of an agent in its code. Names in ``turned`` are replaced by those before the
        rotation.
        """
        addresses = AddressNames(moving, turned)
        b = FormBuilder(m, self._whole, self._kinds, addresses, place, contents=self._contents)
        agents = tuple(build_agent_form(b, a) for a in m.agents)
        return Form(agents, former_of(Machine, frozenset((AGENTS,)))(b, m, None))
