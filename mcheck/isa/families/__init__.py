"""The families of the instruction table, a module per chapter of the PTX ISA, each imported when one of its families is
looked up: a small test needs three of them.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from mcheck.isa.families import dialect
from mcheck.isa.schema import Family

MODULES: dict[str, str] = {
    "scalar": "add sub mul mad div rem abs neg min max and or xor not setp selp shl shr mov cvt cvta mapa nanosleep",
    "control": "bra ret exit setmaxnreg griddepcontrol trap",
    "memory": "ld st st.bulk",
    "matrix_rows": "ldmatrix stmatrix",
    "cache_policy": "createpolicy",
    "atomics": "atom red",
    "multimem": "multimem.ld_reduce multimem.st multimem.red multimem.st.async multimem.red.async",
    "fences": "fence membar fence.proxy membar.proxy",
    "barriers": "bar barrier barrier.cluster bar.warp.sync",
    "collective": "elect.sync shfl.sync vote.sync match redux.sync activemask",
    "mbarrier": (
        "mbarrier.init mbarrier.inval mbarrier.expect_tx mbarrier.complete_tx mbarrier.arrive "
        "mbarrier.arrive.expect_tx mbarrier.arrive_drop mbarrier.arrive_drop.expect_tx cp.async.mbarrier.arrive "
        "mbarrier.test_wait mbarrier.test_wait.parity mbarrier.try_wait mbarrier.try_wait.parity "
        "mbarrier.pending_count mbarrier.check_layout"
    ),
    "launch_control": "clusterlaunchcontrol.try_cancel.async clusterlaunchcontrol.query_cancel",
    "cp_async": "cp.async cp.async.commit_group cp.async.wait_group cp.async.wait_all",
    "bulk": (
        "cp.async.bulk multimem.cp.async.bulk cp.reduce.async.bulk multimem.cp.reduce.async.bulk "
        "cp.async.bulk.prefetch cp.async.bulk.commit_group cp.async.bulk.wait_group"
    ),
    "tensor": "cp.async.bulk.tensor cp.reduce.async.bulk.tensor cp.async.bulk.prefetch.tensor prefetch",
    "async_store": "st.async red.async",
    "tensormap": "tensormap.replace tensormap.query tensormap.cp_fenceproxy",
    "wgmma": "wgmma.mma_async wgmma.fence wgmma.commit_group wgmma.wait_group",
    "tensor_memory": (
        "tcgen05.alloc tcgen05.dealloc tcgen05.relinquish_alloc_permit tcgen05.ld tcgen05.ld.red "
        "tcgen05.ld.red.spcompress tcgen05.st tcgen05.wait::ld tcgen05.wait::st "
        "tcgen05.fence::before_thread_sync tcgen05.fence::after_thread_sync tcgen05.mma tcgen05.mma.sp "
        "tcgen05.mma.ws tcgen05.mma.ws.sp tcgen05.cp tcgen05.shift tcgen05.commit"
    ),
}
"""The names of the families in each module, in the order of the table."""

_MODULE_OF = {name: module for module, names in MODULES.items() for name in names.split()}

DIALECT: tuple[Family, ...] = dialect.FAMILIES
"""The pseudo-instructions of the table dialect."""

LONGEST = max(name.count(".") + 1 for name in (*_MODULE_OF, *(family.name for family in DIALECT)))
"""The most parts that the name of a family has."""


def find_family(head: tuple[str, ...]) -> Family | None:
    """The family of the PTX ISA with this name, given by its parts."""
    module = _MODULE_OF.get(".".join(head))
    return None if module is None else _families_in(module)[head]


@cache
def ptx_families() -> tuple[Family, ...]:
    """Every instruction of the PTX ISA in the table."""
    return tuple(family for module in MODULES for family in _families_in(module).values())


@cache
def _families_in(module: str) -> dict[tuple[str, ...], Family]:
    found = import_module(f"mcheck.isa.families.{module}").FAMILIES
    return {family.head: family for family in found}
