"""What the launches of a file touch, what they find in memory when they begin, and which pairs may get in each other's
way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations

from mcheck.base.budget import Limit, TimeOut
from mcheck.base.errors import InputError, Unsupported
from mcheck.base.reasons import Cause, Reason, error_reason, share_reason
from mcheck.base.records import dataclass, replace
from mcheck.checking.modules.grid_coverage import is_conflict
from mcheck.checking.modules.launches.example_words import example_words
from mcheck.checking.modules.launches.launch_order import Conflict, StreamOrder
from mcheck.checking.modules.launches.left_contents import ended_launch
from mcheck.frontend.ptx.known_contents import Contents, Memory
from mcheck.frontend.ptx.launch import AnyNumber, Argument, Buffer, Launch, Map
from mcheck.frontend.ptx.memory_layout import POINTER
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.source_signatures import shortest_name
from mcheck.simt.execution.cluster import MissingParameter
from mcheck.simt.grid.footprints.footprint import READ
from mcheck.simt.grid.launches.launch_accesses import ANYWHERE, LaunchFootprint, follow_launch
from mcheck.simt.grid.launches.launch_overlap import CommonBytes, OverlapFinder
from mcheck.simt.grid.launches.wait_order import AFTER

FOLLOW_SECONDS = 10.0
"""Time for the accesses of a launch beside which those of other GPUs run: words that it shares with them are not known,
and if they decide how often a loop runs, it may not end.
"""


@dataclass(slots=True)
class LaunchStudy:
    """The launches of a file; what is asked for is computed once."""

    module: Module
    launches: tuple[Launch, ...]
    limit: Limit
    footprints: dict[Launch, LaunchFootprint | Reason] = field(default_factory=dict)
    followed: dict[int, LaunchFootprint | Reason] = field(default_factory=dict)
    beginnings: dict[int, Launch] = field(default_factory=dict)
    ended: dict[Launch, Launch | None] = field(default_factory=dict)
    missing: dict[int, Reason] = field(default_factory=dict)
    """Launches that may overlap with others and whose accesses are not all known, and why."""
    overlaps: OverlapFinder = field(default_factory=OverlapFinder)
    streams: dict[int, tuple[tuple[int, ...], StreamOrder]] = field(default_factory=dict)
    """By GPU, the numbers of its launches, and their order."""
    constants: frozenset[Memory] = frozenset()
    """Memory that the host alone may write."""

    def __post_init__(self) -> None:
        constants = (name for name, v in self.module.all_variables if v.space == "const")
        self.constants = frozenset(("variable", name) for name in constants)
        for gpu in dict.fromkeys(launch.gpu for launch in self.launches):
            numbers = tuple(k for k, launch in enumerate(self.launches) if launch.gpu == gpu)

            def look_up(place: int, numbers: tuple[int, ...] = numbers) -> LaunchFootprint | None:
                return self.footprint(numbers[place])

            order = StreamOrder(tuple(self.launches[k] for k in numbers), look_up, self.limit, self.overlaps)
            self.streams[gpu] = numbers, order

    def name(self, number: int) -> str:
        """A launch by its number in the file, from 1 on, and its entry."""
        return f"launch {number + 1} ({self.entry(number)})"

    def entry(self, number: int) -> str:
        """The kernel of a launch, as C++ names it if no other kernel of the module has that name."""
        return shortest_name(self.launches[number].entry, self.module.entries)

    # --- what a launch finds and touches --------------------------------------------------------------------------

    def footprint(self, number: int) -> LaunchFootprint | None:
        """What a launch touches; ``None`` if that cannot be found out."""
        found = self._follow(number)
        return None if isinstance(found, Reason) else found

    def _follow(self, number: int) -> LaunchFootprint | Reason:
        if number not in self.followed:
            self.followed[number] = self._follow_beginning(number)
        return self.followed[number]

    def _follow_beginning(self, number: int) -> LaunchFootprint | Reason:
        begun = self.begins_with(number)
        key = replace(begun, gpu=0, programmatic=False)
        if key not in self.footprints:
            limit = self.limit if len(self.streams) == 1 else self.limit.share(FOLLOW_SECONDS)
            try:
                self.footprints[key] = follow_launch(self.module, key, limit)
            except (InputError, Unsupported) as error:
                self.footprints[key] = _why_not(error, begun)
            except TimeOut:
                self.limit.check()
                self.footprints[key] = share_reason("following its accesses", FOLLOW_SECONDS)
        return self.footprints[key]

    def _compared(self, number: int) -> LaunchFootprint | None:
        """What a launch touches, for a comparison with others; notes what is missing."""
        found = self._follow(number)
        if isinstance(found, Reason):
            self.missing[number] = found
            return None
        if found.misses_accesses:
            said = f"{found.left_out} of its clusters take other ways than those that were executed"
            if found.lost:
                said = "not all of its threads were followed to their end"
            if found.one_order:
                said = "its accesses depend on the order of threads, of which one was followed"
            self.missing[number] = Reason(Cause.CLUSTERS, said)
        return found

    def begins_with(self, number: int) -> Launch:
        """A launch as it begins: where earlier ones may have written, contents of buffers and of the module's variables
        are not known.
        """
        if number not in self.beginnings:
            self.beginnings[number] = self._beginning(number)
        return self.beginnings[number]

    def _beginning(self, number: int) -> Launch:
        return self.launches[number].with_contents(*(self._contents(number, m) for m in self._memories(number)))

    def _memories(self, number: int) -> Iterator[Memory]:
        """The memories of a launch whose contents the file, or the module, gives."""
        yield from (("buffer", b.name) for b in self.launches[number].buffers if b.declared and b.initial)
        told = {("variable", n): None for n, v in self.module.all_variables if v.is_told}
        yield from told | dict.fromkeys(given.memory for given in self.launches[number].contents)

    def examples(self, number: int) -> tuple[Launch, ...]:
        """A launch with some contents where earlier ones may have written and it is not known what: those of the file
        with zeros behind them, and words that lead the kernel different ways.
        """
        fills = ((True, bytes(4)), *((False, word) for word in example_words(self.module, self.launches[number].entry)))
        return tuple(dict.fromkeys(self._example(number, of_file, word) for of_file, word in fills))

    def _example(self, number: int, of_file: bool, word: bytes) -> Launch:
        launch, begun = self.launches[number], self.begins_with(number)
        filled: dict[str, bytes] = {}
        for buffer in launch.buffers:
            if not buffer.declared or buffer.size is None or buffer.size > MAX_FILLED:
                continue
            memory: Memory = ("buffer", buffer.name)
            if self._is_written(number, memory):
                given = buffer.initial if of_file else buffer.initial[: begun.contents_of(memory).forgotten]
                filled[buffer.name] = given + (word * (buffer.size // len(word) + 1))[len(given) : buffer.size]
        if filled:
            launch = replace(launch, arguments=tuple(_with_contents(a, filled) for a in launch.arguments))
        known = [(launch.contents_of(m), begun.contents_of(m).words) for m in self._memories(number)]
        return launch.with_contents(*(replace(given, words=words) for given, words in known if words))

    def _contents(self, number: int, memory: Memory) -> Contents:
        """The contents of a memory when a launch begins: what the host has changed before a launch, as that says, and
        what launches write, hold for all that come later. Launches of other GPUs, and what the host changes for them,
        may come at any time.
        """
        contents = Contents(memory)
        first = [other for other in range(len(self.launches)) if self._comes_first(other, number, memory)]
        apart = [other for other in first if self.launches[other].gpu != self.launches[number].gpu]
        for other in (other for other in first if other not in apart):
            contents = self._changed_before(other, contents)
            written = self._first_written(other, number, memory)
            if written is not None:
                ended = self._ended(other, number)
                contents = contents.forgetting(written) if ended is None else ended.contents_of(memory)
        contents = self._changed_before(number, contents)
        for other in apart:
            for at in (self.launches[other].contents_of(memory).forgotten, self._first_written(other, number, memory)):
                contents = contents if at is None else contents.forgetting(at)
        return contents

    def _changed_before(self, number: int, contents: Contents) -> Contents:
        """The contents of a memory after what the host has done before a launch. Launches before a programmatic one
        may run beside it, and write after the host.
        """
        launch = self.launches[number]
        host = launch.contents_of(contents.memory)
        if host.forgotten is not None:
            contents = contents.forgetting(host.forgotten)
        for at, data in () if launch.programmatic else host.words:
            contents = contents.holding(at, data)
        return contents

    def _ended(self, other: int, number: int) -> Launch | None:
        """An earlier launch with what it leaves in memory, if that is known, and no launch runs beside it."""
        alone = len(self.streams) == 1 and not any(launch.programmatic for launch in self.launches[: number + 1])
        if not alone or _has_unknown_pointer(self.launches[other]):
            return None
        begun = self.begins_with(other)
        if begun not in self.ended:
            self.ended[begun] = ended_launch(self.module, begun, self.limit)
        return self.ended[begun]

    def _is_written(self, number: int, memory: Memory) -> bool:
        """Whether earlier launches, or those of other GPUs, may have written a memory."""
        others = [k for k in range(len(self.launches)) if self._comes_first(k, number, memory)]
        return any(self._first_written(other, number, memory) is not None for other in others)

    def _comes_first(self, other: int, number: int, memory: Memory) -> bool:
        """Whether a launch may access a memory before another one begins."""
        apart = self.launches[other].gpu != self.launches[number].gpu
        if other == number or (other > number and not apart) or (apart and self._is_of_one_gpu(memory)):
            return False
        return memory[0] != "buffer" or self._may_point(other, memory[1])

    def _first_written(self, other: int, number: int, memory: Memory) -> int | None:
        """The first byte of a memory that a launch may write before, or while, another one runs."""
        if memory in self.constants:
            return None
        footprint = self.footprint(other) if other < number else None
        if footprint is None or footprint.is_partial:
            return 0
        found: list[int] = []
        for access in footprint.accesses:
            if access.form.kind == READ or access.memory not in (memory, ANYWHERE):
                continue
            lows = [e.low + access.path.space.bound_form(e.slopes)[0] for e in access.extents]
            found.append(0 if access.memory == ANYWHERE else max(0, min(lows)))
        return min(found, default=None)

    def _is_of_one_gpu(self, memory: Memory) -> bool:
        """Whether each GPU has such a memory of its own."""
        return memory[0] == "variable" and not any(
            v.is_managed for name, v in self.module.all_variables if name == memory[1]
        )

    def _may_point(self, number: int, name: str) -> bool:
        """Whether a launch may have a pointer to a declared buffer."""
        launch = self.launches[number]
        return _has_unknown_pointer(launch) or any(b.declared and b.name == name for b in launch.buffers)

    # --- pairs of launches ----------------------------------------------------------------------------------------

    def may_share(self, one: int, other: int) -> bool:
        """Whether two launches may touch common memory at all."""
        a, b = self.launches[one], self.launches[other]
        names = [{x.name for x in launch.buffers if x.declared} for launch in (a, b)]
        if names[0] & names[1] or _has_unknown_pointer(a) or _has_unknown_pointer(b):
            return True
        return any(v.space == "global" and (a.gpu == b.gpu or v.is_managed) for _, v in self.module.all_variables)

    def has_unknown_pointer(self, number: int) -> bool:
        """Whether a launch has a pointer that is not given, which may be one to any buffer."""
        return _has_unknown_pointer(self.launches[number])

    def may_write_for(self, number: int, other: int, memory: str) -> bool:
        """Whether a launch may write what another one waits for: one that began before it, or runs on another GPU."""
        same = self.launches[other].gpu == self.launches[number].gpu
        if other == number or (same and other > number) or not self.may_share(number, other):
            return False
        if same and not self._may_overlap(other, number) and self._is_known(number, memory):
            return False
        found = self.footprint(other)
        if found is None or found.is_partial:
            return True
        return any(a.form.kind != READ and (a.memory[1] == memory or a.memory == ANYWHERE) for a in found.accesses)

    def _may_overlap(self, first: int, second: int) -> bool:
        """Whether two launches of one GPU may be running at the same time."""
        numbers, order = self.streams[self.launches[first].gpu]
        return order.may_overlap(numbers.index(first), numbers.index(second))

    def _is_known(self, number: int, name: str) -> bool:
        """Whether all contents of a buffer are known when a launch begins."""
        begun = self.begins_with(number)
        for buffer in begun.buffers:
            data, unknown = begun.contents_of(("buffer", buffer.name)).apply(buffer.initial, bytes(len(buffer.initial)))
            if buffer.name == name:
                return len(data) == buffer.size and not any(unknown)
        return False

    def not_waiting(self, second: int, first: int) -> int:
        """The last launch between two of a stream that does not wait for the one before it."""
        numbers, _ = self.streams[self.launches[second].gpu]
        between = numbers[numbers.index(first) + 1 : numbers.index(second)]
        for number in reversed(between):
            footprint = self.footprint(number)
            if footprint is None or footprint.waits != AFTER:
                return number
        return between[-1]

    def conflicts(self) -> list[Conflict]:
        """The accesses of launches of one stream that nothing orders, one for each pair of places in the code."""
        found: dict[object, Conflict] = {}
        seen: set[object] = set()
        for numbers, order in self.streams.values():
            for first, second in combinations(range(len(numbers)), 2):
                self.limit.check()
                if not (order.may_overlap(first, second) and self.may_share(numbers[first], numbers[second])):
                    continue
                earlier, later = self._compared(numbers[first]), self._compared(numbers[second])
                like = id(earlier), id(later), *order.relation(first, second)
                if earlier is None or later is None or like in seen:
                    continue
                seen.add(like)
                for one in order.conflicts(first, second):
                    placed = replace(one, first=numbers[first], second=numbers[second])
                    found.setdefault((placed.spans, placed.definite), placed)
        definite = {one.spans for one in found.values() if one.definite}
        return [one for one in found.values() if one.definite or one.spans not in definite]

    def sharing_groups(self) -> list[tuple[int, ...]]:
        """Launches of different GPUs that have pointers to common buffers, closed under that."""
        return self._groups(range(len(self.launches)), self.may_share)

    def meeting_groups(self, numbers: Sequence[int]) -> list[tuple[int, ...]]:
        """Those of these launches of different GPUs that may access common bytes, closed under that."""
        return self._groups(numbers, self._may_meet)

    def _groups(self, numbers: Sequence[int], are_related: Callable[[int, int], bool]) -> list[tuple[int, ...]]:
        groups: list[set[int]] = []
        for first, second in combinations(numbers, 2):
            self.limit.check()
            if self.launches[first].gpu == self.launches[second].gpu or not are_related(first, second):
                continue
            met = [group for group in groups if group & {first, second}]
            groups = [group for group in groups if group not in met] + [{first, second}.union(*met)]
        return sorted(tuple(sorted(group)) for group in groups)

    def _may_meet(self, first: int, second: int) -> bool:
        """Whether launches of different GPUs may access common bytes, one of them not only to read."""
        if not self.may_share(first, second):
            return False
        for number in (first, second):
            footprint = self.footprint(number)
            if footprint is None or footprint.misses_accesses:
                return True
        return any(True for _ in self.concurrent_conflicts((first, second)))

    def is_apart(self, number: int, others: Sequence[int]) -> bool:
        """Whether it is known for certain that a launch keeps off what some others access, or is ordered with them."""
        for other in others:
            pair = self.launches[number], self.launches[other]
            ordered = pair[0].gpu == pair[1].gpu and not any(launch.programmatic for launch in self.launches)
            if ordered or not self.may_share(number, other):
                continue
            for one in (number, other):
                footprint = self.footprint(one)
                if footprint is None or footprint.is_partial:
                    return False
        return True

    def concurrent_conflicts(self, numbers: Sequence[int]) -> Iterator[Conflict]:
        """Conflicting accesses of these launches, those on different GPUs, one for each pair of places in the code."""
        seen = set()
        for first, second in combinations(numbers, 2):
            self.limit.check()
            if self.launches[first].gpu == self.launches[second].gpu or not self.may_share(first, second):
                continue
            one, other = self.footprint(first), self.footprint(second)
            for a in () if one is None else one.accesses:
                for b in () if other is None else other.accesses:
                    if any(map(self._is_of_one_gpu, (a.memory, b.memory))) or not is_conflict(a.form, b.form):
                        continue
                    known = ANYWHERE not in (a.memory, b.memory)
                    if (known and a.memory != b.memory) or (a.span, b.span) in seen:
                        continue
                    common = self.overlaps.find(a, b) if known else None
                    if common is not None or not known:
                        seen.add((a.span, b.span))
                        yield Conflict(
                            first=first, second=second, earlier=a, later=b,
                            common=common if isinstance(common, CommonBytes) else None, definite=False,
                        )  # fmt: skip


def _why_not(error: InputError | Unsupported, launch: Launch) -> Reason:
    """Why a launch cannot be executed by itself."""
    names = [a.name for a in launch.arguments if any(isinstance(place, AnyNumber) for _, place in a.places)]
    if isinstance(error, MissingParameter) and names:
        return Reason(Cause.NUMBERS, f"{' and '.join(names)} may be any number")
    return error_reason(error)


MAX_FILLED = 1 << 20
"""The largest buffer, in bytes, that gets contents as an example."""


def _has_unknown_pointer(launch: Launch) -> bool:
    return any(not a.is_given and a.size >= POINTER for a in launch.arguments)


def _with_contents(argument: Argument, kept: Mapping[str, bytes]) -> Argument:
    """The argument, its declared buffers with other initial contents."""

    def changed(buffer: Buffer) -> Buffer:
        pointers = tuple((offset, changed(target)) for offset, target in buffer.pointers)
        if not (buffer.declared and buffer.name in kept):
            return replace(buffer, pointers=pointers)
        end = len(kept[buffer.name])
        cut = min((offset for offset, _ in pointers if offset < end < offset + POINTER), default=end)
        return replace(
            buffer, initial=kept[buffer.name][:cut], pointers=tuple(p for p in pointers if p[0] + POINTER <= cut)
        )

    places: list[tuple[int, Buffer | Map | AnyNumber]] = []
    for offset, place in argument.places:
        match place:
            case Buffer() if place.maps:
                place = replace(place, maps=tuple(replace(m, buffer=changed(m.buffer)) for m in place.maps))
            case Buffer():
                place = changed(place)
            case Map():
                place = replace(place, buffer=changed(place.buffer))
        places.append((offset, place))
    return replace(argument, places=tuple(places))
