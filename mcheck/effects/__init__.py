"""The effect of an instruction once the values of its operands are known, common to all engines and ``exec``.

``effect_of(op, operands, site)`` of ``mcheck.effects.dispatch`` gives an ``Effect``: the preconditions that these
values violate, and the bytes, mbarriers and signals that the instruction touches. Nothing here knows events, orders or
memory contents.
"""
