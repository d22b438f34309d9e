"""PTX instructions that exist and are not modelled: not an error of the user."""

from __future__ import annotations

_ARITHMETIC = """addc bfe bfi bfind bmsk brev clz cnot copysign cos dp2a dp4a ex2 fma fns lg2 lop3 mad24 madc mul24
popc prmt rcp rsqrt sad set shf sin slct sqrt subc szext tanh testp vabsdiff vadd vmax vmin vset vshl vshr vsub"""
_MEMORY = """alloca applypriority discard fabric getctarank isspacep istypep ldu multimem prefetchu
stackrestore stacksave suld suq sured sust tex tld4 txq"""
_MATRIX = "mma movmatrix spcompress spdecompress wmma"
_CONTROL = "brev brkpt brx call pmevent"

INSTEAD = {
    "mma": "it accesses registers only: leave it out",
    "movmatrix": "it accesses registers only: leave it out",
}
"""What does the same as far as order is concerned, for those that kernels with asynchronous copies have."""

UNMODELLED = frozenset(f"{_ARITHMETIC} {_MEMORY} {_MATRIX} {_CONTROL}".split())
