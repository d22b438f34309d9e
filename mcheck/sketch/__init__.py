"""Kernel sketches in Python: they build the same program as the block form, with line numbers of the caller.

::

    from mcheck.sketch import Sketch, assert_clean

    s = Sketch("copy-and-store")
    out, buf = s.array("out", 16, space="global"), s.array("buf", 16)

    with s.role("worker", cta=0, warp=0, lane=0) as t:
        t.st(buf, 7)
        t.fence_proxy_async("shared::cta")
        t.bulk_store(out, buf, 16)
        t.commit_group()
        t.wait_group(0)

    assert_clean(s)
"""

from mcheck.sketch.build import Sketch, assert_clean, assert_finds
from mcheck.sketch.pipeline import Pipeline

__all__ = ["Pipeline", "Sketch", "assert_clean", "assert_finds"]
