"""The families of the instruction table, a module per chapter of the PTX ISA."""

from __future__ import annotations

from mcheck.isa.families import (
    async_store,
    atomics,
    barriers,
    bulk,
    cache_policy,
    collective,
    control,
    cp_async,
    dialect,
    fences,
    launch_control,
    matrix_rows,
    mbarrier,
    memory,
    multimem,
    scalar,
    tensor,
    tensor_memory,
    tensormap,
    wgmma,
)
from mcheck.isa.schema import Family

PTX: tuple[Family, ...] = (
    *scalar.FAMILIES,
    *control.FAMILIES,
    *memory.FAMILIES,
    *matrix_rows.FAMILIES,
    *cache_policy.FAMILIES,
    *atomics.FAMILIES,
    *multimem.FAMILIES,
    *fences.FAMILIES,
    *barriers.FAMILIES,
    *collective.FAMILIES,
    *mbarrier.FAMILIES,
    *launch_control.FAMILIES,
    *cp_async.FAMILIES,
    *bulk.FAMILIES,
    *tensor.FAMILIES,
    *async_store.FAMILIES,
    *tensormap.FAMILIES,
    *wgmma.FAMILIES,
    *tensor_memory.FAMILIES,
)
"""Every instruction of the PTX ISA in the table."""

DIALECT: tuple[Family, ...] = dialect.FAMILIES
"""The pseudo-instructions of the table dialect."""
