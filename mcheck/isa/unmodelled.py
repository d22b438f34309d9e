"""PTX instructions that exist and are not modelled: they are no mistake of the user's."""

from __future__ import annotations

_ARITHMETIC = """addc bfe bfi bfind bmsk brev clz cnot copysign cos dp2a dp4a ex2 fma fns lg2 lop3 mad24 madc mul24
popc prmt rcp rsqrt sad set shf sin slct sqrt subc szext tanh testp vabsdiff vadd vmax vmin vset vshl vshr vsub"""
_MEMORY = """alloca applypriority createpolicy discard getctarank isspacep istypep ldu multimem prefetchu
stackrestore stacksave suld suq sured sust tex tld4 txq"""
_MATRIX = "ldmatrix mma movmatrix stmatrix tcgen05 wmma"
_CONTROL = "brev brkpt brx call clusterlaunchcontrol griddepcontrol pmevent"

UNMODELLED = frozenset(f"{_ARITHMETIC} {_MEMORY} {_MATRIX} {_CONTROL}".split())
