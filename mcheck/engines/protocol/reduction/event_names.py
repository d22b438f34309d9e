"""Names for the events of a window in canonical forms.

Events that a new edge may touch, and the last one of each thread, have numbers, in the order of their threads; of all
others only their kinds are recorded (``mcheck.engines.protocol.reduction.canonical_form``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mcheck.base.declared_state import Naming, named_attributes
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.incremental.entries import Entry, bits
from mcheck.engines.protocol.incremental.indistinguishable import KEPT_PER_KIND
from mcheck.engines.protocol.incremental.indistinguishable import find_pinned as with_names
from mcheck.engines.protocol.incremental.sorts import rename_addresses
from mcheck.engines.protocol.incremental.window import Window
from mcheck.engines.protocol.reduction.completion_classes import CompletionClasses
from mcheck.engines.protocol.reduction.derived_forms import Part, former_of, inline_names
from mcheck.engines.protocol.reduction.event_merging import find_pinned_events
from mcheck.engines.protocol.state.address_names import AddressNames
from mcheck.engines.protocol.state.naming import EDGES, EVENT_SETS, LIVE_EVENT, RELATION, SORT

if TYPE_CHECKING:
    import numpy as np

    Members = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]

Named = tuple[int, frozenset[int]]
"""A set of events: the numbers of those that have one, as bits, and the kinds of the others."""
CHUNK = 256
"""Number of sets whose members are compared together: a bit takes a byte meanwhile."""


class EventNames:
    """The names of a window's events; ``window`` is the form of the window.

    ``kinds`` numbers the kinds of events without names, and equal sets, for all windows that are compared.
    """

    def __init__(
        self, m: Machine, completion: CompletionClasses, addresses: AddressNames, kinds: dict[object, int]
    ) -> None:
        self._m = m
        self._completion = completion
        self.at = addresses.name_of
        self._kinds = kinds
        w = m.window
        self.sorts = {
            number: rename_addresses(sort, addresses.rotation.original_address)
            for sort, number in w.sorts.numbers.items()
        }
        watched = with_names(w, find_pinned_events(m, completion))
        self._order = sorted(bits(watched), key=self._place)
        self._number = {k: n for n, k in enumerate(self._order)}
        self._kind: dict[int, int] = {}
        self.window = self._window(watched)

    def name(self, mask: int) -> Named:
        """Return the name of a set of events."""
        out = 0
        kinds = set()
        for k in bits(mask & self._m.window.all):
            n = self._number.get(k)
            if n is None:
                kinds.add(self._kind[k])
            else:
                out |= 1 << n
        return out, frozenset(kinds)

    def _stored(self, naming: Naming) -> Iterator[tuple[str, dict[int, Any]]]:
        """Yield the attributes of the window with a kind of name: what is stored for nodes of the model."""
        for attribute, given in named_attributes(Window):
            if given == naming:
                yield attribute, getattr(self._m.window, attribute)

    def _entry(self, k: int) -> Entry:
        entry = self._m.window.entries[k]
        assert entry is not None
        return entry

    def _place(self, k: int) -> tuple[int, bool, int]:
        entry = self._entry(k)
        return entry.thread, entry.event.order is None, entry.time

    def _window(self, watched: int) -> Part:
        """Return the form of the window: the named events in their order; the kinds of the others are numbered."""
        import numpy as np

        w = self._m.window
        others = list(bits(w.all & ~watched))
        columns = [columns[n] for _, columns in self._stored(RELATION) for n in sorted(columns)]
        labels, rows = self._kept_sets(columns)
        alike = self._group_alike(others, watched, rows, columns)
        heads = [some[0] for some in alike]
        inside, which = _membership_table(rows, w.all, [*self._order, *heads])
        same = self._kinds.setdefault(tuple(which), len(self._kinds))  # which of the rows are one and the same
        members = np.packbits(inside[:, len(self._order) :].T, axis=1)
        into, at = _membership_table([column[k] for k in heads for column in columns], w.all, self._order)
        named = np.packbits(into, axis=1)
        own = named[at].reshape(len(heads), len(columns) * named.shape[1])
        for n, some in enumerate(alike):
            label = (*self._event(self._entry(some[0])), same, members[n].tobytes(), own[n].tobytes())
            number = self._kinds.setdefault(label, len(self._kinds))
            for k in some:
                self._kind[k] = number
        return (
            tuple(self._event(self._entry(k)) for k in self._order), tuple(labels),
            same, np.packbits(inside[:, : len(self._order)], axis=1).tobytes(), WINDOW_FORM(self, w, None),
            self._count_kinds(),
        )  # fmt: skip

    def _kept_sets(self, columns: list[list[int]]) -> tuple[list[object], list[int]]:
        """Return all stored sets of events, each with what it is a set of."""
        w = self._m.window
        labels: list[object] = []
        rows: list[int] = []
        for what, sets in self._stored(EVENT_SETS):
            labels += [(what, n) for n in sorted(sets)]
            rows += [sets[n] for n in sorted(sets)]
        labels += [(what, n) for what, columns in self._stored(RELATION) for n in sorted(columns)]
        rows += [column[k] for column in columns for k in self._order]
        for n, k in enumerate(self._order):
            e = self._entry(k)
            for which in EDGE_ATTRIBUTES:
                edges = getattr(e, which)
                for name in sorted(edges):
                    if edges[name] & w.all:
                        labels.append((n, name, which))
                        rows.append(edges[name])
        together = self._grouped_sets()
        labels += sorted(together, key=repr)
        rows += [together[label] for label in sorted(together, key=repr)]
        return labels, rows

    def _grouped_sets(self) -> dict[Part, int]:
        """Return the sets of live events of copies of which a new edge touches all or none."""
        signals = {key: n for n, key in enumerate(self._m.signals)}
        out: dict[Part, int] = {}
        for key, members in self._completion.together.items():
            label: Part = key
            match key:
                case ("phase", int() as address, (int() as life, int() as phase)):
                    bar = self._m.mbarriers[address]
                    when = (life, phase) if bar.state is None else bar.relative_phase((life, phase))
                    label = "phase", self.at(address), when
                case ("signal", number):
                    label = "signal", signals[number]  # type: ignore[index]
            if members & self._m.window.all:
                out[label] = out.get(label, 0) | members
        return out

    def _group_alike(
        self, others: list[int], watched: int, rows: list[int], columns: list[list[int]]
    ) -> list[list[int]]:
        """Return the events without names, grouped by the sets that contain them and those stored for them."""
        import numpy as np

        rest = self._m.window.all & ~watched
        different = list(dict.fromkeys(row & rest for row in rows))
        told = np.packbits(_membership_table(different, rest, others)[0].T, axis=1)
        found: dict[Part, list[int]] = {}
        for n, k in enumerate(others):
            key = (*self._event(self._entry(k)), told[n].tobytes(), *(column[k] & watched for column in columns))
            found.setdefault(key, []).append(k)
        return list(found.values())

    def _count_kinds(self) -> frozenset[tuple[int, int]]:
        """Return the kinds, each with the number of its events, at most as many as the window keeps."""
        count: dict[int, int] = {}
        for kind in self._kind.values():
            count[kind] = min(count.get(kind, 0) + 1, KEPT_PER_KIND)
        return frozenset(count.items())

    def _event(self, e: Entry) -> Part:
        return ENTRY_FORM(self, e, None)


inline_names(SORT, "b.sorts[$]")
inline_names(LIVE_EVENT, "(b.at($.address), $.size, b.at($.virtual)) if o.exact else (), $.op.span")

ENTRY_FORM = former_of(Entry, frozenset((EDGES,)))
EDGE_ATTRIBUTES = tuple(name for name, naming in named_attributes(Entry) if naming == EDGES)
WINDOW_FORM = former_of(Window, frozenset((RELATION, EVENT_SETS)))


def _membership_table(rows: list[int], keep: int, which: list[int]) -> tuple[Members, list[int]]:
    """Return a table of the distinct sets by events (1 for a member), and the row of each set."""
    import numpy as np

    width = keep.bit_length() // 8 + 1
    numbers: dict[int, int] = {}
    at = [numbers.setdefault(row & keep, len(numbers)) for row in rows]
    different = list(numbers)
    out = np.zeros((len(different), len(which)), dtype=np.uint8)
    for k in range(0, len(different), CHUNK):
        raw = b"".join([row.to_bytes(width, "little") for row in different[k : k + CHUNK]])
        matrix = np.frombuffer(raw, dtype=np.uint8).reshape(-1, width)
        all_members = np.unpackbits(matrix, axis=1, bitorder="little")
        np.take(all_members, which, axis=1, out=out[k : k + CHUNK], mode="clip")  # "raise" would copy
    return out, at
