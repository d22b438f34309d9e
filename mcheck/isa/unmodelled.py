"""PTX instructions that exist and are not modelled: not an error of the user.

In modules they are followed as far as their kind says: of what only computes, the result is unknown.
"""

from __future__ import annotations

from mcheck.base.records import dataclass
from mcheck.isa.kinds import Kind


@dataclass(frozen=True, slots=True)
class Unmodelled:
    """An instruction: its name and kind, whether it writes its first operand if that is no address, and which operand
    has to be an address.
    """

    name: str
    kind: Kind
    writes: bool = True
    address: int | None = None


_ARITHMETIC = """addc bfe bfi bfind bmsk brev clz cnot copysign cos dp2a dp4a ex2 fma fns lg2 lop3 mad24 madc mul24
popc prmt rcp rsqrt sad set shf sin slct sqrt subc szext tanh testp vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2
vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vset vset2 vset4 vshl vshr vsub vsub2 vsub4"""

ROWS = (
    *(Unmodelled(name, Kind.ARITHMETIC) for name in _ARITHMETIC.split()),
    Unmodelled("getctarank", Kind.CTA_RANK),
    Unmodelled("isspacep", Kind.SPACE_TEST),
    *(Unmodelled(name, Kind.QUERY) for name in ("istypep", "stacksave", "suq", "txq")),
    *(Unmodelled(name, Kind.MATRIX_PRODUCT) for name in ("mma", "movmatrix", "wmma.mma")),
    *(Unmodelled(name, Kind.UNKNOWN) for name in ("fabric", "spcompress", "spdecompress", "wmma")),
    *(Unmodelled(name, Kind.TEXTURE_LOAD) for name in ("tex", "tld4")),
    # without .sync: removed for sm_70 and later (9.7.9.5, 9.7.13.7)
    Unmodelled("shfl", Kind.SHUFFLE),
    Unmodelled("vote", Kind.VOTE),
    Unmodelled("wmma.load", Kind.FRAGMENT_LOAD),
    Unmodelled("wmma.store", Kind.FRAGMENT_STORE),
    Unmodelled("ldu", Kind.LOAD, address=1),
    Unmodelled("suld", Kind.SURFACE_LOAD),
    Unmodelled("sust", Kind.SURFACE_STORE),
    Unmodelled("sured", Kind.SURFACE_REDUCTION),
    Unmodelled("discard", Kind.DISCARD),
    Unmodelled("applypriority", Kind.CACHE_PRIORITY),
    Unmodelled("prefetchu", Kind.PREFETCH),
    Unmodelled("alloca", Kind.STACK),
    Unmodelled("stackrestore", Kind.STACK, writes=False),
    Unmodelled("call", Kind.CALL),
    Unmodelled("brx", Kind.INDEXED_BRANCH, writes=False),
    Unmodelled("brkpt", Kind.BREAKPOINT, writes=False),
    Unmodelled("pmevent", Kind.EVENT, writes=False),
)

INSTEAD = {
    "mma": "it accesses registers only: leave it out",
    "movmatrix": "it accesses registers only: leave it out",
}
"""What does the same as far as order is concerned, for those that kernels with asynchronous copies have."""
MODELLED_IN_PART = frozenset(("shfl", "vote"))
"""Instructions with another form in the table."""
UNMODELLED = frozenset(row.name.partition(".")[0] for row in ROWS) - MODELLED_IN_PART
