"""The data of tensor copies, by NumPy: a whole box at once.

Copies go unit by unit (``mcheck.semantics.tensor_units``), most tiles are loaded by one gather
(``mcheck.semantics.tile_gather``).
``mcheck.semantics.tensor_footprint`` has the same as a list of runs, byte by byte. PTX ISA 9.0 sections 5.5 and
9.7.9.27.1.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcheck.base.records import replace
from mcheck.ir.memory import TensorMapSpec
from mcheck.semantics import arrays, tensor_footprint, tensor_map, tile_gather
from mcheck.semantics.chip_behaviour import DOCUMENTED, Behaviour
from mcheck.semantics.memory import Memory
from mcheck.semantics.reductions import element_size
from mcheck.semantics.tensor_units import PERIOD, Plan, plan
from mcheck.semantics.undefined import Misuse
from mcheck.semantics.units import Units, elementwise, put, take, whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

# --- moving the bytes ---------------------------------------------------------------------------------


def gather(memory: Memory, what: Plan) -> Units:
    """The units of a load as they go to shared memory: converted, with the fill outside."""
    import numpy as np

    fill = tensor_map.fill_pattern(what.spec)
    if what.whole:
        return _converted(what, take(memory, what.address, what.unit))
    pattern = np.frombuffer(fill * (what.unit // len(fill)), np.uint8)
    used = what.inside > 0
    if not used.any():
        return Units(np.tile(pattern, (len(used), 1)))
    units = _converted(what, _inside(memory, what, used))
    whole(units.data)[~used] = whole(pattern.reshape(1, -1))[0]
    outside = np.arange(what.unit) >= what.inside[:, None]
    partial = np.flatnonzero(used & (what.inside < what.unit))
    if len(partial):
        units.data[partial] = np.where(outside[partial], pattern, units.data[partial])
    if units.known is not None:
        units.known[outside] = 1
    return units


def _inside(memory: Memory, what: Plan, used: NDArray[np.bool_]) -> Units:
    """The units that are ``used``, as they lie in the tensor; the others have any contents."""
    import numpy as np

    last = int(what.address[used].max())
    block, offset = memory.locate(last)
    if offset + what.unit <= len(block.data):
        return take(memory, np.where(used, what.address, last), what.unit)
    # The tensor ends within its last unit, and so does the object.
    units = Units(np.zeros((len(used), what.unit), np.uint8), np.ones((len(used), what.unit), np.uint8))
    assert units.known is not None
    for k in np.flatnonzero(used).tolist():
        count = int(what.inside[k])
        data, known = memory.read(int(what.address[k]), count)
        units.data[k, :count] = np.frombuffer(data, np.uint8)
        if known is not None:
            units.known[k, :count] = np.frombuffer(known, np.uint8)
    return Units(units.data) if units.known.all() else units


def _converted(what: Plan, units: Units) -> Units:
    """What a load makes of the units; an element that is computed from an unknown byte is unknown as a whole."""
    elemtype = what.spec.elemtype
    known = elementwise(tensor_map.element_size(elemtype), units.known) if elemtype.startswith("tf32") else units.known
    return Units(arrays.convert_elements(elemtype, units.data), known)


def deposit(memory: Memory, what: Plan, image: Units, shift: int = 0) -> None:
    """Writes the units of a load into shared memory, ``shift`` bytes further on (that of another CTA's window)."""
    put(memory, what.shared + shift, image)


def image_of(memory: Memory, what: Plan) -> Units:
    """The units of a store, from shared memory; those outside the tensor are read like the others."""
    return take(memory, what.shared, what.unit)


def scatter(memory: Memory, what: Plan, image: Units, reduce: str | None = None, how: Behaviour = DOCUMENTED) -> None:
    """Writes the units of a store into the tensor, or reduces into it; what lies outside is skipped (5.5.3.3)."""
    import numpy as np

    # A map of f32.ftz flushes on every chip; what .ftz is for besides, nothing says.
    flush = how.flushes_f32 or what.spec.elemtype.endswith(".ftz")
    if how.pads_stores:
        what = padded(what)
    full = np.ones(len(what.inside), bool) if what.whole else what.inside == what.unit
    kind = tensor_map.reduction_type(what.spec.elemtype, reduce)

    def reduced(old: Units, new: Units) -> Units:
        assert reduce is not None
        known = elementwise(element_size(kind), old.known, new.known)
        return Units(arrays.reduce_array(reduce, kind, old.data, new.data, flush=flush), known)

    if reduce is None:
        put(memory, what.address[full], image[full])
    else:
        # Rows may be named twice (scatter4): each addition has to see the one before.
        places, values = what.address[full], image[full]
        for part in _distinct(places):
            put(memory, places[part], reduced(take(memory, places[part], what.unit), values[part]))
    for k in np.flatnonzero((what.inside > 0) & ~full):
        count, address = int(what.inside[k]), int(what.address[k])
        piece = image[k, :count]
        if reduce is not None:
            data, known = memory.read(address, count)
            old = Units(np.frombuffer(data, np.uint8), None if known is None else np.frombuffer(known, np.uint8))
            piece = reduced(old, piece)
        memory.write(address, piece.data.tobytes(), None if piece.known is None else piece.known.tobytes())


def padded(what: Plan) -> Plan:
    """The plan of a store that writes every unit whole of which a byte is inside the tensor."""
    import numpy as np

    return replace(what, inside=np.where(what.inside > 0, what.unit, 0))


def check_tensor(memory: Memory, what: Plan) -> None:
    """Every byte of the copy inside the tensor has to lie in one object; nothing has been touched before this."""
    import numpy as np

    used = what.inside > 0
    if not used.any():
        return
    low = int(what.address[used].min())
    ends = what.address[used] + what.inside[used]
    block, offset = memory.locate(low)
    beyond = int(ends.max()) - (low - offset) - len(block.data)
    if beyond > 0:
        # Several objects under one map are legal as long as every piece is in one; rare, so looked at one by one.
        for k in np.flatnonzero(used):
            memory.locate(int(what.address[k]), int(what.inside[k]))


def _distinct(places: Integers) -> list[Integers]:
    """Index sets that together cover ``places``, each without a repeated place, in order."""
    import numpy as np

    _, first = np.unique(places, return_index=True)
    if len(first) == len(places):
        return [np.arange(len(places))]
    rest = np.setdiff1d(np.arange(len(places)), first)
    return [first, *(rest[part] for part in _distinct(places[rest]))]


def load(
    memory: Memory, spec: TensorMapSpec, mode: str, coords: Sequence[int], shared: int, info: Sequence[int] = ()
) -> int:
    """A whole tensor load at once; the byte count of its complete-tx. Nothing is written before an error."""
    if mode == "tile" and not info:
        counted = tile_gather.load(memory, spec, tuple(coords), shared, shared % PERIOD)
        if counted is not None:
            return counted
    what = plan(spec, mode, coords, shared, info=info)
    check_tensor(memory, what)
    _check_shared(memory, what)
    deposit(memory, what, gather(memory, what))
    return tensor_footprint.box_bytes(spec, mode, info)


def store(
    memory: Memory,
    spec: TensorMapSpec,
    mode: str,
    coords: Sequence[int],
    shared: int,
    reduce: str | None = None,
    how: Behaviour = DOCUMENTED,
) -> None:
    """A whole tensor store or reduction at once. Nothing is written before an error."""
    what = plan(spec, mode, coords, shared, kind="store", reduce=reduce)
    check_tensor(memory, padded(what) if how.pads_stores else what)
    _check_shared(memory, what)
    scatter(memory, what, image_of(memory, what), reduce, how)


def _check_shared(memory: Memory, what: Plan) -> None:
    low, high = int(what.shared.min()), int(what.shared.max()) + what.unit
    instance = memory.find(low)
    if instance is None or instance.object.space != "shared":
        raise Misuse("UB103", f"the shared address {low:#x} is in no shared object", tensor_footprint.SECTION)
    memory.locate(low, high - low)
