"""The kinds of PTX instructions: what an analysis of code has to know of an instruction, beside its operands."""

from __future__ import annotations

from enum import Enum, auto


class Kind(Enum):
    """What an instruction does. The instruction table gives one to each of its rows."""

    UNKNOWN = auto()

    # registers only
    ARITHMETIC = auto()
    MOVE = auto()
    COMPARISON = auto()
    """``setp``."""
    SELECTION = auto()
    """``selp``."""
    ADDRESS_CONVERSION = auto()
    """``cvta``."""
    ADDRESS_MAPPING = auto()
    """``mapa``."""
    CTA_RANK = auto()
    """``getctarank``."""
    SPACE_TEST = auto()
    """``isspacep``."""
    ACTIVE_MASK = auto()
    MATRIX_PRODUCT = auto()
    """``mma``, ``wmma.mma`` and ``movmatrix``: data of registers, exchanged within a warp."""
    QUERY = auto()
    """What is asked of the stack, a texture, a surface or a cache."""
    CANCEL_QUERY = auto()

    # exchanges between the lanes of a warp
    SHUFFLE = auto()
    VOTE = auto()
    MATCH = auto()
    WARP_REDUCTION = auto()
    """``redux``."""
    ELECTION = auto()

    # memory
    LOAD = auto()
    STORE = auto()
    FILL = auto()
    """``st.bulk``."""
    ATOMIC = auto()
    """``atom``."""
    REDUCTION = auto()
    """``red``."""
    ASYNC_STORE = auto()
    ASYNC_REDUCTION = auto()
    MATRIX_LOAD = auto()
    """``ldmatrix``."""
    MATRIX_STORE = auto()
    """``stmatrix``."""
    FRAGMENT_LOAD = auto()
    """``wmma.load``."""
    FRAGMENT_STORE = auto()
    """``wmma.store``."""
    MULTIMEM = auto()
    """``multimem.ld_reduce``, ``multimem.st`` and ``multimem.red``."""
    TEXTURE_LOAD = auto()
    SURFACE_LOAD = auto()
    SURFACE_STORE = auto()
    SURFACE_REDUCTION = auto()
    DISCARD = auto()
    PREFETCH = auto()
    CACHE_PRIORITY = auto()
    STACK = auto()
    """``alloca`` and ``stackrestore``."""

    # asynchronous copies
    ASYNC_COPY = auto()
    """``cp.async``."""
    BULK_COPY = auto()
    BULK_REDUCTION = auto()
    MULTIMEM_COPY = auto()
    """``multimem.cp.async.bulk`` and ``multimem.cp.reduce.async.bulk``."""
    TENSOR_COPY = auto()
    TENSOR_REDUCTION = auto()
    BULK_PREFETCH = auto()
    TENSOR_PREFETCH = auto()
    COPY_GROUP = auto()
    """The groups of copies: they are closed and waited for."""
    COPY_ARRIVAL = auto()
    """``cp.async.mbarrier.arrive``."""
    MAP_UPDATE = auto()
    """``tensormap.replace``."""
    MAP_PUBLICATION = auto()
    """``tensormap.cp_fenceproxy``."""

    # synchronisation
    FENCE = auto()
    PROXY_FENCE = auto()
    BARRIER = auto()
    BARRIER_ARRIVAL = auto()
    BARRIER_REDUCTION = auto()
    CLUSTER_ARRIVAL = auto()
    CLUSTER_WAIT = auto()
    WARP_BARRIER = auto()
    MBARRIER = auto()
    """Of an mbarrier all but arrivals and waits."""
    MBARRIER_ARRIVAL = auto()
    MBARRIER_WAIT = auto()
    GRID_WAIT = auto()
    GRID_TRIGGER = auto()
    CANCEL_REQUEST = auto()

    # the tensor core
    WGMMA = auto()
    WGMMA_FENCE = auto()
    WGMMA_COMMIT = auto()
    WGMMA_WAIT = auto()
    TMEM_ALLOCATION = auto()
    TMEM_RELEASE = auto()
    TMEM_PERMIT = auto()
    TMEM_LOAD = auto()
    TMEM_STORE = auto()
    TMEM_LOAD_WAIT = auto()
    TMEM_STORE_WAIT = auto()
    TMEM_FENCE = auto()
    TMEM_PRODUCT = auto()
    TMEM_COPY = auto()
    TMEM_SHIFT = auto()
    TMEM_COMMIT = auto()

    # control
    BRANCH = auto()
    INDEXED_BRANCH = auto()
    CALL = auto()
    RETURN = auto()
    EXIT = auto()
    TRAP = auto()
    BREAKPOINT = auto()
    SLEEP = auto()
    EVENT = auto()
    """``pmevent``."""
    REGISTER_COUNT = auto()
    """``setmaxnreg``."""


ADDRESS_FUNCTIONS = frozenset((Kind.ADDRESS_CONVERSION, Kind.ADDRESS_MAPPING, Kind.CTA_RANK, Kind.SPACE_TEST))
COMPUTATIONS = ADDRESS_FUNCTIONS | {
    Kind.ARITHMETIC, Kind.MOVE, Kind.COMPARISON, Kind.SELECTION, Kind.ACTIVE_MASK, Kind.MATRIX_PRODUCT, Kind.QUERY,
    Kind.CANCEL_QUERY,
}  # fmt: skip
"""No effect except on registers."""
COLLECTIVES = frozenset((Kind.SHUFFLE, Kind.VOTE, Kind.MATCH, Kind.WARP_REDUCTION, Kind.ELECTION))
STORES = frozenset((Kind.STORE, Kind.FILL, Kind.ASYNC_STORE))
REDUCTIONS = frozenset((Kind.REDUCTION, Kind.ASYNC_REDUCTION))
MULTIMEM = frozenset((Kind.MULTIMEM, Kind.MULTIMEM_COPY))
"""Accesses of the copies that a multimem address stands for (PTX ISA 8.2.3)."""
COPIES = frozenset((
    Kind.ASYNC_COPY, Kind.BULK_COPY, Kind.BULK_REDUCTION, Kind.TENSOR_COPY, Kind.TENSOR_REDUCTION, Kind.MULTIMEM_COPY,
    Kind.COPY_GROUP, Kind.COPY_ARRIVAL,
))  # fmt: skip
"""Asynchronous copies, their groups and their arrivals; prefetches copy nothing that counts."""
COPIES_BY_ADDRESS = frozenset((
    Kind.ASYNC_COPY, Kind.BULK_COPY, Kind.BULK_REDUCTION, Kind.MULTIMEM_COPY, Kind.BULK_PREFETCH,
))  # fmt: skip
"""Those that name no tensor map."""
PREFETCHED_COPIES = frozenset((Kind.BULK_PREFETCH, Kind.TENSOR_PREFETCH))
PREFETCHES = PREFETCHED_COPIES | {Kind.PREFETCH}
MAP_EDITS = frozenset((Kind.MAP_UPDATE, Kind.MAP_PUBLICATION))
FENCES = frozenset((Kind.FENCE, Kind.PROXY_FENCE))
CLUSTER_BARRIERS = frozenset((Kind.CLUSTER_ARRIVAL, Kind.CLUSTER_WAIT))
BARRIERS = CLUSTER_BARRIERS | {
    Kind.BARRIER, Kind.BARRIER_ARRIVAL, Kind.BARRIER_REDUCTION, Kind.WARP_BARRIER,
}  # fmt: skip
MBARRIERS = frozenset((Kind.MBARRIER, Kind.MBARRIER_ARRIVAL, Kind.MBARRIER_WAIT))
GRID_DEPENDENCIES = frozenset((Kind.GRID_WAIT, Kind.GRID_TRIGGER))
CANCELS = frozenset((Kind.CANCEL_REQUEST, Kind.CANCEL_QUERY))
WARPGROUP = frozenset((Kind.WGMMA, Kind.WGMMA_FENCE, Kind.WGMMA_COMMIT, Kind.WGMMA_WAIT))
TMEM = frozenset((
    Kind.TMEM_ALLOCATION, Kind.TMEM_RELEASE, Kind.TMEM_PERMIT, Kind.TMEM_LOAD, Kind.TMEM_STORE, Kind.TMEM_LOAD_WAIT,
    Kind.TMEM_STORE_WAIT, Kind.TMEM_FENCE, Kind.TMEM_PRODUCT, Kind.TMEM_COPY, Kind.TMEM_SHIFT, Kind.TMEM_COMMIT,
))  # fmt: skip
FRAGMENTS = frozenset((Kind.FRAGMENT_LOAD, Kind.FRAGMENT_STORE))
MOVES = (COPIES - {Kind.COPY_GROUP, Kind.COPY_ARRIVAL}) | STORES | PREFETCHES | FRAGMENTS | {
    Kind.LOAD, Kind.MATRIX_LOAD, Kind.MATRIX_STORE,
}  # fmt: skip
"""They only move data, without a memory order of their own: they order nothing else."""
BRANCHES = frozenset((Kind.BRANCH, Kind.INDEXED_BRANCH))
JUMPS = BRANCHES | {Kind.RETURN, Kind.EXIT, Kind.TRAP}
"""After these, without a guard, control is not at the next instruction."""
