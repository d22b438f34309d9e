"""The launch of a kernel that Gluon compiled: once compiled, Gluon's kernels are Triton's."""

from __future__ import annotations

from mcheck.integrations.triton import launch

__all__ = ["launch"]
