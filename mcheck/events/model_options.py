"""Options of a model, ``(* mcheck: semantics = … *)``, that affect the emission of events.

``ptx-6.0`` and ``ptx-7.5``: barriers of the table dialect are static instances that block as the peers' tools have
it, and a failing
compare-and-swap stores the old value. Everything else follows PTX.
"""

from __future__ import annotations

from mcheck.base.records import dataclass
from mcheck.cat.ast import Model


@dataclass(frozen=True, slots=True)
class Semantics:
    """``reduction_scope``: of the elements of cp.reduce.async.bulk (gpu up to PTX 9.2, sys from 9.3)."""

    static_barriers: bool = False
    cas_stores: bool = False
    reduction_scope: str = "gpu"


def model_semantics(model: Model, *, dialect: bool, names_static_barriers: bool = False) -> Semantics:
    """The semantics that a model selects; by default that of the table dialect if it uses ``syncbar``."""
    options = dict(model.options)
    asked = options.get("semantics")
    classic = asked in ("ptx-6.0", "ptx-7.5") or (asked is None and names_static_barriers)
    return Semantics(
        static_barriers=classic and dialect,
        cas_stores=classic,
        reduction_scope="sys" if asked in ("ptx-9.3", "ptx-9.5") else "gpu",
    )
