"""PTX instructions in the words of the languages that are compiled to PTX.

``WORDS`` has a row for each instruction; ``{n}`` is its number. A language without a word for it leaves the PTX. Where
an access was inlined from a library of CUDA C++ (``library_of``), its words come before those of the language.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from mcheck.base.records import dataclass
from mcheck.base.source_files import SourceText
from mcheck.findings.finding import Finding

CUDA_SUFFIXES = frozenset({".cu", ".cuh", ".h", ".hh", ".hpp", ".inl", ".cpp", ".cc"})
LIBRARIES = (
    ("pipeline", re.compile(r"/cuda/pipeline$")),
    ("barrier", re.compile(r"/cuda/(?:__barrier/|barrier$)|memcpy_async_barrier")),
    ("groups", re.compile(r"/cooperative_groups/")),
)
"""Libraries of CUDA C++ as fields of ``Word``, and the paths of their headers. The first one counts."""
CUDA_HEADERS = (("__pipeline_", "cuda_pipeline"), ("cuda::ptx::", "cuda/ptx"))
"""What the words of CUDA C++ that a header declares begin with, and what its name contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """An instruction of PTX as a pattern, and its name in each language; empty where there is none. ``one_cta``: it is
    meant for threads of one CTA only.
    """

    ptx: str
    one_cta: bool = False
    cuda: str = ""
    cutlass: str = ""
    gluon: str = ""
    triton: str = ""
    cute: str = ""
    tilelang: str = ""
    pipeline: str = ""
    barrier: str = ""
    groups: str = ""


_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"]+)"', re.MULTILINE)
_GROUP = r"(?P<n>\d+)"
WORDS = (
    Word(
        ptx=r"bar\.warp\.sync(?: 0xffffffff\b| -1|(?! 0x))",
        cuda="__syncwarp()",
        cute="cute.arch.sync_warp()",
        tilelang="T.sync_warp()",
    ),
    Word(ptx=r"bar\.warp\.sync (?!0xffffffff\b)(?P<n>0x[0-9a-f]+)", cuda="__syncwarp({n})"),
    Word(
        ptx=r"bar\.sync 0",
        cuda="__syncthreads()",
        gluon="gl.barrier()",
        triton="tl.debug_barrier()",
        cute="cute.arch.sync_threads()",
        tilelang="T.sync_threads()",
    ),
    Word(
        ptx=r"a barrier(?= between|\Z)",
        one_cta=True,
        cuda="__syncthreads()",
        gluon="gl.barrier()",
        triton="tl.debug_barrier()",
        cute="cute.arch.sync_threads()",
        tilelang="T.sync_threads()",
    ),
    Word(ptx=r"the phase of the mbarrier", pipeline="consumer_wait()", barrier="wait()"),
    Word(ptx=r"Go on to the next stage", pipeline="consumer_release()"),
    Word(ptx=r"arrive on it afterwards", pipeline="consumer_release()", barrier="arrive()"),
    Word(ptx=r"arrive on it(?! afterwards)", pipeline="producer_commit()", barrier="arrive()"),
    Word(
        ptx=r"a release that the issuing thread acquires",
        pipeline="consumer_release()` before its `producer_acquire()",
        barrier="arrive()` before its `wait()",
    ),
    Word(
        ptx=r"barrier\.cluster\.arrive and barrier\.cluster\.wait",
        cuda="cluster.sync()",
        cutlass="cute::cluster_sync()",
        cute="cute.arch.cluster_arrive(), cluster_wait()",
    ),
    Word(
        ptx=rf"cp\.async\.wait_group {_GROUP}",
        cuda="__pipeline_wait_prior({n})",
        cutlass="cute::cp_async_wait<{n}>()",
        gluon="async_copy.wait_group({n})",
        cute="cute.arch.cp_async_wait_group({n})",
        tilelang="T.ptx_wait_group({n})",
        pipeline="consumer_wait()` or `cuda::pipeline_consumer_wait_prior<{n}>(pipe)",
        groups="cooperative_groups::wait_prior<{n}>(group)",
    ),
    Word(
        ptx=r"cp\.async\.wait_all",  # it waits for what is not committed, too
        cuda="__pipeline_commit(); __pipeline_wait_prior(0)",
        cutlass="cute::cp_async_wait<0>()",
        gluon="async_copy.commit_group(), async_copy.wait_group(0)",
        cute="cute.arch.cp_async_commit_group(), cp_async_wait_group(0)",
        tilelang="T.ptx_wait_group(0)",
        pipeline="producer_commit()` and `consumer_wait()",
        groups="cooperative_groups::wait(group)",
    ),
    Word(
        ptx=r"cp\.async\.commit_group",
        cuda="__pipeline_commit()",
        cutlass="cute::cp_async_fence()",
        gluon="async_copy.commit_group()",
        cute="cute.arch.cp_async_commit_group()",
        tilelang="T.ptx_commit_group()",
        pipeline="producer_commit()",
    ),
    Word(
        ptx=rf"cp\.async\.bulk\.wait_group\.read {_GROUP}",
        cuda="cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<{n}>{{}})",
        cutlass="cute::tma_store_wait<{n}>()",
        gluon="tma.store_wait({n})",
        cute="cute.arch.cp_async_bulk_wait_group({n}, read=True)",
    ),
    Word(
        ptx=rf"cp\.async\.bulk\.wait_group {_GROUP}",
        cuda="cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<{n}>{{}})",
        gluon="tma.store_wait({n}, read_only=False)",
        cute="cute.arch.cp_async_bulk_wait_group({n})",
    ),
    Word(
        ptx=r"cp\.async\.bulk\.commit_group",
        cuda="cuda::ptx::cp_async_bulk_commit_group()",
        cutlass="cute::tma_store_arrive()",
        cute="cute.arch.cp_async_bulk_commit_group()",
    ),
    Word(
        ptx=r"fence\.proxy\.async\.shared::cta",
        cuda="cuda::ptx::fence_proxy_async(cuda::ptx::space_shared)",
        cutlass="cutlass::arch::fence_view_async_shared()",
        gluon="fence_async_shared()",
        cute="cute.arch.fence_view_async_shared()",
        tilelang="T.fence_proxy_async()",
    ),
    Word(ptx=r"fence\.proxy\.async\.global", cuda="cuda::ptx::fence_proxy_async(cuda::ptx::space_global)"),
    Word(ptx=r"fence\.proxy\.async(?![\w.])", cuda="cuda::ptx::fence_proxy_async()", tilelang="T.fence_proxy_async()"),
    Word(ptx=r"fence\.acq_rel\.cta", cuda="__threadfence_block()", cute="cute.arch.fence_acq_rel_cta()"),
    Word(ptx=r"fence\.acq_rel\.gpu", cuda="__threadfence()", cute="cute.arch.fence_acq_rel_gpu()"),
    Word(ptx=r"fence\.acq_rel\.sys", cuda="__threadfence_system()", cute="cute.arch.fence_acq_rel_sys()"),
    *(
        Word(ptx=rf"\.{order}\.(?:gpu|sys)", triton=f"sem='{order}'", gluon=f"sem='{order}'")
        for order in ("acquire", "release", "acq_rel")
    ),
    Word(ptx=r"a barrier of the grid", cuda="cooperative_groups::this_grid().sync()"),
    Word(
        ptx=r"griddepcontrol\.wait",
        cuda="cudaGridDependencySynchronize()",
        cutlass="cutlass::arch::wait_on_dependent_grids()",
        gluon="gdc_wait()",
        triton="tl.extra.cuda.gdc_wait()",
        cute="cute.arch.griddepcontrol_wait()",
    ),
    Word(ptx=r"st\.relaxed\.gpu", cuda="atomicExch()", triton="tl.atomic_xchg(…, sem='relaxed')"),
    Word(ptx=r"st\.relaxed\.sys", cuda="atomicExch_system()", triton="tl.atomic_xchg(…, sem='relaxed', scope='sys')"),
    *(
        Word(
            ptx=rf"atom\.relaxed\.\S*\b{ptx}\b(?:\.\w+)*",
            cuda=f"atomic{cuda}()",
            gluon=f"gl.atomic_{ptx}()",
            triton=f"tl.atomic_{ptx}()",
        )
        for ptx, cuda in (
            ("add", "Add"),
            ("min", "Min"),
            ("max", "Max"),
            ("and", "And"),
            ("or", "Or"),
            ("xor", "Xor"),
            ("cas", "CAS"),
        )
    ),
    Word(
        ptx=rf"wgmma\.wait_group(?:\.sync\.aligned)? {_GROUP}",
        cutlass="cute::warpgroup_wait<{n}>()",
        gluon="warpgroup_mma_wait({n})",
        cute="cute.nvgpu.warpgroup.wait_group({n})",
        tilelang="T.wait_wgmma({n})",
    ),
    Word(
        ptx=r"wgmma\.wait_group(?= before)",
        cutlass="cute::warpgroup_wait<…>()",
        gluon="warpgroup_mma_wait(…)",
        cute="cute.nvgpu.warpgroup.wait_group(…)",
        tilelang="T.wait_wgmma(…)",
    ),
    Word(
        ptx=r"wgmma\.commit_group(?:\.sync\.aligned)?",
        cutlass="cute::warpgroup_commit_batch()",
        cute="cute.nvgpu.warpgroup.commit_group()",
    ),
    Word(
        ptx=r"wgmma\.fence(?:\.sync\.aligned)?",
        cutlass="cute::warpgroup_arrive()",
        cute="cute.nvgpu.warpgroup.fence()",
    ),
    Word(
        ptx=r"tcgen05\.wait::ld\.sync\.aligned",
        cuda="cuda::ptx::tcgen05_wait_ld()",
        cutlass="cutlass::arch::fence_view_async_tmem_load()",
    ),
    Word(
        ptx=r"tcgen05\.wait::st\.sync\.aligned",
        cuda="cuda::ptx::tcgen05_wait_st()",
        cutlass="cutlass::arch::fence_view_async_tmem_store()",
    ),
    Word(ptx=r"tcgen05\.commit\S*", gluon="tcgen05_commit(bar)"),
)


def language_of(finding: Finding, texts: SourceText) -> str:
    """The language that a finding's module was compiled from, as a field of ``Word``; empty if it is not known."""
    return _language(dict.fromkeys(span.path for access in finding.accesses for span in reversed(access.source)), texts)


def language_of_module(source: str, texts: SourceText) -> str:
    """The language of the files that a module names."""
    return _language(dict.fromkeys(_FILE.findall(source)), texts)


def _language(paths: Collection[str], texts: SourceText) -> str:
    suffixes = {os.path.splitext(path)[1] for path in paths}
    if ".py" in suffixes:
        text = "\n".join(texts.whole(path) for path in paths if path.endswith(".py"))
        for mark, language in (("gluon", "gluon"), ("tilelang", "tilelang"), ("cutlass", "cute"), ("triton", "triton")):
            if mark in text:
                return language
        return ""
    if suffixes & CUDA_SUFFIXES:
        text = "\n".join(texts.whole(path) for path in paths)
        return "cutlass" if re.search(r"\bcute::|\bcutlass::|<cute/|<cutlass/", text) else "cuda"
    return ""


def library_of(finding: Finding) -> str:
    """The library that accesses of a finding were inlined from, as a field of ``Word``; empty if there is none."""
    chains = (*(access.source for access in finding.accesses), *(line.source for line in finding.lines))
    paths = {span.path for chain in chains for span in chain}
    return next((name for name, path in LIBRARIES if any(map(path.search, paths))), "")


class Vocabulary:
    """The words of a language, each told once in a text, behind the first mention of its instruction."""

    def __init__(self, language: str, library: str = "", *, one_cta: bool = True) -> None:
        """``one_cta``: the text is about threads of one CTA."""
        said = (language, library) if language in ("cuda", "cutlass") else (language,)
        found = ((word, _name(word, *said)) for word in WORDS if one_cta or not word.one_cta)
        self._left = [(word, name) for word, name in found if name]

    def name(self, code: str) -> str:
        """An instruction, with the language's word for it."""
        for word, name in self._left:
            if (found := re.fullmatch(word.ptx, code)) is not None:
                self._left.remove((word, name))
                return _named(found, name)
        return code

    def annotate(self, text: str) -> str:
        """Prose with the language's words for the instructions in it."""
        for word, name in [*self._left]:
            if (found := re.search(rf"(?<![\w.`]){word.ptx}(?![\w`])", text)) is not None:
                self._left.remove((word, name))
                text = f"{text[: found.start()]}{_named(found, name)}{text[found.end() :]}"
        return text


def find_word(code: str, language: str) -> str:
    """The language's word for an instruction; empty if there is none."""
    for word in WORDS:
        found = re.fullmatch(word.ptx, code)
        if found is not None and (name := _name(word, language)):
            return _filled(found, name)
    return ""


def _name(word: Word, language: str, library: str = "") -> str:
    if not language:
        return ""
    return (
        (str(getattr(word, library)) if library else "")
        or str(getattr(word, language))
        or (word.cuda if language == "cutlass" else "")
    )


def is_declared(word: str, text: str) -> bool:
    """Whether a source with this text includes the header of a word of CUDA C++; most need none."""
    header = next((header for prefix, header in CUDA_HEADERS if word.startswith(prefix)), "")
    return header in text


def _named(found: re.Match[str], name: str) -> str:
    return f"{found[0]} (`{_filled(found, name)}`)"


def _filled(found: re.Match[str], name: str) -> str:
    return name.format(**{key: value for key, value in found.groupdict().items() if value is not None})
