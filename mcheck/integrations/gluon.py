"""The launch of a kernel that Gluon compiled: Gluon's kernels are Triton's once they are compiled."""

from __future__ import annotations

from mcheck.integrations.triton import launch

__all__ = ["launch"]
