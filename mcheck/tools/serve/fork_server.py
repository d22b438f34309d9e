"""The process that answers by forking: modules, models and caches are loaded once, and each request has a fork.

Its standard error is that of the server. On the control socket come orders: to fork, with the socket of the request
and a pipe that tells the fork when nobody waits for it any more; and to keep what a fork has found: answers, and the
functions that it has compiled. The process ends with the control socket. A fork is the leader of a process group, so
that it can be stopped with all that it started.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import socket
import struct
import sys
from contextlib import suppress

from mcheck.checking.run.pipes import read_exactly, receive, send
from mcheck.tools.serve.memory_store import MemoryStore

ORDER = struct.Struct("<BQ")
"""The kind of an order, and the length of the data behind it."""
FORK, KEEP = 1, 2
_SKETCH = """PTX warm
{{ .shared .align 16 .b8 buf[16]; .shared .b64 full; .global .align 16 .b8 src[16]; }}
P@cta 0, warp 0 {{
  bar.warp.sync 0xffffffff;
  if (%laneid == 0) {{
    mbarrier.init.shared::cta.b64 [full], 1;
    {store}mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [full];
    await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
  }}
}}
"""
OLDEST = 8, 0
"""The version of PTX of a module that has the default model."""
_MODULE = """.version {version}
.target sm_90
.address_size 64
.visible .entry warm(.param .u64 p) .reqntid 32, 1, 1
{{
  .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<3>;
  .shared .align 4 .b8 buf[128];
  .shared .align 128 .b8 tile[128];
  .shared .align 8 .b64 full;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  st.shared.u32 [buf], %r1;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared::cta.b64 [full], 1;
  bar.sync 0;
  @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 128, [full];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
  @!%p2 bra WAIT;
  ld.shared.u32 %r3, [tile];
  fence.proxy.async.shared::cta;
  ld.shared.u32 %r2, [buf];
  st.global.u32 [%rd1 + 128], %r2;
  ret;
}}
"""


def main(control: socket.socket) -> None:
    """Obey orders until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server hears of it too, and closes the socket
    warm_up()
    from mcheck.checking.policy.engines import compile_functions

    store = MemoryStore()
    gc.collect()
    gc.freeze()  # what exists now is shared with the forks; collecting it would only copy pages
    while True:
        header, given, _, _ = socket.recv_fds(control, ORDER.size, 2)
        if len(header) < ORDER.size:
            header += read_exactly(control.fileno(), ORDER.size - len(header)) or b""
        if len(header) < ORDER.size:
            return
        kind, length = ORDER.unpack(header)
        if kind == KEEP:
            data = read_exactly(control.fileno(), length)
            if data is None:
                return
            answers, compiled = pickle.loads(data)  # noqa: S301 - written by a fork of this process
            store.update(answers)
            compile_functions(compiled)
        else:
            _fork(control, store, *given)
        _reap()


def warm_up() -> None:
    """Load what answers need, by giving some, and what launches need whose clusters share memory."""
    import mcheck.checking.modules.cluster_groups
    import mcheck.checking.modules.launches.launch_sequence
    import mcheck.checking.modules.pairs.drawn_grid  # noqa: F401 - imported for the workers
    from mcheck.checking.cache.keys import version
    from mcheck.checking.check.command import preload
    from mcheck.checking.check.module_models import MODELS
    from mcheck.checking.policy import engines
    from mcheck.checking.run.case import DEFAULT_MODEL, LaunchText, Settings
    from mcheck.checking.run.single import load_model
    from mcheck.tools.serve import requests
    from mcheck.tools.serve.answering import answer_request
    from mcheck.tools.serve.requests import Request

    preload(Settings())
    engines.preload()
    load_model(DEFAULT_MODEL)
    version()
    launch = LaunchText(text='{"grid": 1, "params": {"p": {"buffer": 256}}}', path="launch")
    for store in ("", "st.shared.u32 [buf], 1;\n    "):
        sketch = _SKETCH.format(store=store)
        for kind in (requests.CHECK, requests.OUTCOMES):
            answer_request(Request(kind=kind, path="warm.litmus", text=sketch), MemoryStore())
    for numbers in (OLDEST, *(first for first, _ in MODELS)):
        module = _MODULE.format(version=".".join(map(str, numbers)))
        answer_request(Request(kind=requests.CHECK, path="warm.ptx", text=module, launch=launch), MemoryStore())
    answer_request(Request(kind=requests.EXPLAIN, code="RACE004"), MemoryStore())


def _fork(control: socket.socket, store: MemoryStore, answers: int, life: int) -> None:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.setpgid(0, 0)
            control.close()
            _answer(store, answers, life)
            status = 0
        finally:
            os._exit(status)
    os.close(answers)
    os.close(life)


def _answer(store: MemoryStore, answers: int, life: int) -> None:
    """Answer the request that comes through a socket: with the process that does, then with the reply."""
    from mcheck.checking.policy.engines import compiled_functions
    from mcheck.checking.run.worker_limits import exit_with_pipe
    from mcheck.tools.serve.answering import answer_request

    exit_with_pipe(life)
    with suppress(BrokenPipeError):
        send(answers, pickle.dumps(os.getpid()))
        data = receive(answers)
        if data is not None:
            before = compiled_functions()
            reply = answer_request(pickle.loads(data), store)  # noqa: S301 - written by the server
            found = store.added, compiled_functions() - before
            send(answers, pickle.dumps((reply, found), pickle.HIGHEST_PROTOCOL))


def _reap() -> None:
    """Let processes that have ended go."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
