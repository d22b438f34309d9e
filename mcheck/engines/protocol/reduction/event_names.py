"""Names for the events of a window, for forms: of those that what is to come may tell from others, and kinds of the
others.

Events that a new edge may touch, and the last one of each thread, have numbers, in the order of their threads; of all
others it is told which kinds there are (``mcheck.engines.protocol.reduction.canonical_form``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.incremental.entries import Entry, bits
from mcheck.engines.protocol.incremental.indistinguishable import KEPT_PER_KIND
from mcheck.engines.protocol.incremental.indistinguishable import find_pinned as with_names
from mcheck.engines.protocol.incremental.sorts import rename_addresses
from mcheck.engines.protocol.reduction.completion_classes import CompletionClasses
from mcheck.engines.protocol.reduction.event_merging import find_pinned_events
from mcheck.engines.protocol.state.address_names import AddressNames

if TYPE_CHECKING:
    import numpy as np

    Members = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]

Part = tuple[object, ...]
Named = tuple[int, frozenset[int]]
"""A set of events: the numbers of those that have some, as bits, and the kinds of the others."""
CHUNK = 256
"""Sets that are told apart by their members together: a bit is a byte for that while."""


class EventNames:
    """The names of a window's events; ``window`` is what is kept of all of them, and ``kinds`` numbers the kinds of
    events without names, and which sets are equal, for all windows that are compared.
    """

    def __init__(
        self, m: Machine, completion: CompletionClasses, addresses: AddressNames, kinds: dict[object, int]
    ) -> None:
        self._m = m
        self._completion = completion
        self._at = addresses.name_of
        self._kinds = kinds
        w = m.window
        self._sorts = {
            number: rename_addresses(sort, addresses.rotation.original_address)
            for sort, number in w.sorts.numbers.items()
        }
        watched = with_names(w, find_pinned_events(m, completion))
        self._order = sorted(bits(watched), key=self._place)
        self._number = {k: n for n, k in enumerate(self._order)}
        self._kind: dict[int, int] = {}
        self.window = self._window(watched)

    def name(self, mask: int) -> Named:
        """A set of the window."""
        out = 0
        kinds = set()
        for k in bits(mask & self._m.window.all):
            n = self._number.get(k)
            if n is None:
                kinds.add(self._kind[k])
            else:
                out |= 1 << n
        return out, frozenset(kinds)

    def _entry(self, k: int) -> Entry:
        entry = self._m.window.entries[k]
        assert entry is not None
        return entry

    def _place(self, k: int) -> tuple[int, bool, int]:
        entry = self._entry(k)
        return entry.thread, entry.event.order is None, entry.time

    def _window(self, watched: int) -> Part:
        """The events with names in their order, with all that is kept of them; numbers the kinds of the others."""
        import numpy as np

        w = self._m.window
        others = list(bits(w.all & ~watched))
        columns = [w.cols[n] for n in sorted(w.cols)]
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
            same, np.packbits(inside[:, : len(self._order)], axis=1).tobytes(), w.shown, w.missed, w.has_merged,
            self._count_kinds(),
        )  # fmt: skip

    def _kept_sets(self, columns: list[list[int]]) -> tuple[list[object], list[int]]:
        """All sets of events that are kept, each with what it is a set of (of the columns once for all that have
        names).
        """
        w = self._m.window
        labels: list[object] = []
        rows: list[int] = []
        for what, sets in (("masks", w.masks), ("domains", w.domains)):
            labels += [(what, n) for n in sorted(sets)]
            rows += [sets[n] for n in sorted(sets)]
        labels += sorted(w.cols)
        rows += [column[k] for column in columns for k in self._order]
        for n, k in enumerate(self._order):
            e = self._entry(k)
            for edges, back in ((e.edges, False), (e.back, True)):
                for name in sorted(edges):
                    if edges[name] & w.all:
                        labels.append((n, name, back))
                        rows.append(edges[name])
        together = self._grouped_sets()
        labels += sorted(together, key=repr)
        rows += [together[label] for label in sorted(together, key=repr)]
        return labels, rows

    def _grouped_sets(self) -> dict[Part, int]:
        """The sets of live events of copies of which a new edge touches all or none."""
        signals = {key: n for n, key in enumerate(self._m.signals)}
        out: dict[Part, int] = {}
        for key, members in self._completion.together.items():
            label: Part = key
            match key:
                case ("phase", int() as address, (int() as life, int() as phase)):
                    bar = self._m.mbarriers[address]
                    when = (life, phase) if bar.state is None else bar.relative_phase((life, phase))
                    label = "phase", self._at(address), when
                case ("signal", number):
                    label = "signal", signals[number]  # type: ignore[index]
            if members & self._m.window.all:
                out[label] = out.get(label, 0) | members
        return out

    def _group_alike(
        self, others: list[int], watched: int, rows: list[int], columns: list[list[int]]
    ) -> list[list[int]]:
        """The events without names, those together that are in the same of the sets and have the same in theirs."""
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
        """The kinds that there are, and of which of them as many events as the window keeps of a kind."""
        count: dict[int, int] = {}
        for kind in self._kind.values():
            count[kind] = min(count.get(kind, 0) + 1, KEPT_PER_KIND)
        return frozenset(count.items())

    def _event(self, e: Entry) -> Part:
        event = e.event
        where = (self._at(event.address), event.size, self._at(event.virtual)) if e.exact else ()
        return e.thread, self._sorts[e.sort], e.exact, e.sets, where, event.op.span


def _membership_table(rows: list[int], keep: int, which: list[int]) -> tuple[Members, list[int]]:
    """For each of the different ones of some sets, and each of some events, whether the event is in the set; and for
    each of the sets which of the different ones it is: many are one and the same.
    """
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
