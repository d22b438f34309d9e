"""Operands of the instructions in this folder."""

from __future__ import annotations

from mcheck.ir.expr import Binary, Const, Name, Reg, Special

X, Y, Z = Name("x"), Name("y"), Name("z")
R0, R1, R2, R3 = (Reg(f"r{number}") for number in range(4))
D0, D1 = Reg("rd0"), Reg("rd1")
P0, P1 = Reg("p0"), Reg("p1")
C = Const


def pair(name: str, size: int) -> tuple[tuple[Name, Const], tuple[Name, Const]]:
    """A range of bytes, and that of the other CTA of the pair."""
    peer = Name(name, rank=Binary("^", Special("cluster_ctarank"), C(1)))
    return (Name(name), C(size)), (peer, C(size))
