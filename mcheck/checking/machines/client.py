"""The client side of a distributed run: sends batches to a Dask scheduler and yields results in the order of the tests.

Dask repeats a lost worker's batches by itself. If the scheduler disappears, the client waits for it to come back and
sends again what has no results yet. A batch whose workers die repeatedly is sent test by test.
"""

from __future__ import annotations

import logging
import os
import pickle
import queue
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mcheck.base.errors import InputError
from mcheck.base.reasons import Cause, Reason
from mcheck.base.records import dataclass
from mcheck.checking.cache.keys import version
from mcheck.checking.machines.batches import Batches
from mcheck.checking.machines.parcel import Item, Parcel, Unpacked, pack_item
from mcheck.checking.machines.worker import Done, VersionMismatch, end, work
from mcheck.checking.run.case import Case, Settings
from mcheck.checking.run.pool import OnLost, Task, order_results

if TYPE_CHECKING:
    from distributed import Client, Future

LOCAL = "local"
AHEAD = 3
"""Batches queued for each thread of a worker."""
PATIENCE = 120.0
"""Seconds that the scheduler may be unreachable."""
GLANCE = 1.0
"""Seconds between two checks whether the scheduler is still there."""
UNWATCHED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
"""Turns off most of Dask's monitoring, a hundred samples a second for a dashboard that nobody opens of a cluster that
lives for one run: an eighth of a core with two workers.
"""
NO_DASK = "pip install '.[distributed]' in a checkout of mcheck installs Dask"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[T]):
    """What is done with each test, as functions that can be pickled by reference; ``others``: models needed beside the
    test's own.
    """

    task: Task[T]
    lost: OnLost[T]
    settings: Settings
    others: tuple[str, ...] = ()


@dataclass(slots=True)
class _Batch:
    items: list[Item]
    attempt: int = 0
    future: Future | None = field(default=None, repr=False)


def run_remote(
    cases: Sequence[Case], job: Job[T], address: str, jobs: int, say: Callable[[str], None], tls: str | None = None
) -> Iterator[T]:
    """The results of ``cases``, in their order, computed by the workers of the scheduler at ``address``.

    ``local`` starts a scheduler with ``jobs`` workers on this machine. ``say`` receives progress messages for the user.
    """
    certificates = _certificates(address, tls)
    try:
        import distributed  # noqa: F401 - whether it is there
    except ImportError:
        raise InputError(f"--scheduler {address} needs Dask", hint=NO_DASK) from None
    run: _Run[T] = _Run(cases, job, _Cluster(address, jobs, say, certificates))
    try:
        yield from order_results(run.results())
    finally:
        run.stop()


def _certificates(address: str, folder: str | None) -> Mapping[str, str]:
    """Dask's security options for the certificates in a folder; empty without one, so that Dask uses its own
    configuration.
    """
    if folder is None:
        return {}
    if not address.startswith("tls://"):
        raise InputError(f"--tls needs a scheduler at tls://..., not {address}")
    files = {name: os.path.join(folder, f"{name}.pem") for name in ("ca", "cert", "key")}
    for path in files.values():
        if not os.path.isfile(path):
            raise InputError(f"--tls {folder}: there is no {path}")
    return {"tls_ca_file": files["ca"], "tls_client_cert": files["cert"], "tls_client_key": files["key"]}


class _Cluster:
    """The connection to a scheduler, which is renewed when it is lost."""

    def __init__(
        self, address: str, jobs: int, say: Callable[[str], None], certificates: Mapping[str, str] | None = None
    ) -> None:
        self.address = address
        self._certificates = certificates or {}
        self._jobs = jobs
        self._say = say
        self._own: Any = None
        self._client: Client | None = None
        self._threads = 0
        self._asked = 0.0

    def client(self) -> Client:
        """A working connection; waits for the scheduler, up to ``PATIENCE``."""
        if self._client is None:
            for name in ("distributed", "distributed.client", "distributed.worker", "tornado"):
                logging.getLogger(name).setLevel(logging.CRITICAL)  # what is lost is told here, in other words
            self._client = self._local() if self.address == LOCAL else self._connected()
        return self._client

    def _local(self) -> Client:
        import dask
        from distributed import Client, LocalCluster

        with dask.config.set(UNWATCHED):
            if self._own is None:
                self._own = LocalCluster(
                    n_workers=self._jobs,
                    threads_per_worker=1,
                    memory_limit=0,
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                )
            return Client(self._own, set_as_default=False)

    def _connected(self) -> Client:
        from distributed import Client
        from distributed.security import Security

        secure = {"security": Security(require_encryption=True, **self._certificates)} if self._certificates else {}
        until = time.monotonic() + PATIENCE
        told = False
        while True:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # versions that differ: mcheck's own are looked at
                    return Client(self.address, set_as_default=False, timeout=5, **secure)
            except ValueError as error:
                raise InputError(f"{self.address} is not a scheduler address: {error}") from None
            except (OSError, TimeoutError) as error:
                if time.monotonic() > until:
                    raise InputError(f"no scheduler responds at {self.address}: {error}") from None
                if not told:
                    self._say(f"waiting for the scheduler at {self.address}")
                    told = True
                time.sleep(GLANCE)

    def lost(self) -> bool:
        """Whether the connection is gone."""
        return self._client is None or self._client.status != "running"

    def room(self) -> int:
        """The maximum number of batches in flight: some for each worker thread."""
        if time.monotonic() - self._asked > GLANCE:
            with suppress(OSError, TimeoutError):
                self._threads = sum(self.client().nthreads().values())
            self._asked = time.monotonic()
        return AHEAD * max(self._threads, 1)

    def drop(self) -> None:
        """Closes the connection."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                client.close(timeout=1)

    def close(self) -> None:
        """Closes the connection and a local cluster."""
        self.drop()
        if self._own is not None:
            with suppress(Exception):
                self._own.close(timeout=5)


class _Run(Generic[T]):
    def __init__(self, cases: Sequence[Case], job: Job[T], cluster: _Cluster) -> None:
        self._cases = cases
        self._job = job
        self._cluster = cluster
        self._name = uuid.uuid4().hex[:12]
        self._sent = 0
        self._here: list[int] = []
        self._again: list[_Batch] = []
        self._pending: dict[str, _Batch] = {}
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()

    def stop(self) -> None:
        """Cancels the batches in flight."""
        with suppress(Exception):
            for batch in self._pending.values():
                if batch.future is not None:
                    batch.future.cancel()
        self._pending.clear()
        end()
        self._cluster.close()

    def results(self) -> Iterator[tuple[int, T]]:
        """(index of the test, result) pairs as they arrive."""
        batches = Batches(self._items())
        more = True
        while more or self._again or self._pending:
            if self._cluster.lost():
                self._reconnect()
            while len(self._pending) < self._cluster.room() and (self._again or more):
                batch = self._again.pop() if self._again else _Batch(batches.next_batch())
                more = more and bool(batch.items)
                if batch.items:
                    self._send(batch)
            for index in self._here:
                yield index, self._by_itself(self._cases[index])
            self._here.clear()
            yield from self._received(batches)

    def _items(self) -> Iterator[Item]:
        for index, case in enumerate(self._cases):
            found = pack_item(index, case, self._job.settings, self._job.others)
            if isinstance(found, Unpacked):
                self._here.append(index)
            else:
                yield found

    def _by_itself(self, case: Case) -> T:
        """The result of a test that cannot be sent, computed in a local process so that limits hold."""
        job = self._job
        parcel = Parcel(
            cases=(case,), models=(), settings=job.settings, task=job.task, lost=job.lost, version=version()
        )
        done = work(pickle.dumps(parcel, pickle.HIGHEST_PROTOCOL), lambda: True)
        assert isinstance(done, Done)
        result: T = pickle.loads(done.results[0])  # noqa: S301 - from a process of our own
        return result

    def _send(self, batch: _Batch) -> None:
        job = self._job
        models = {name: texts for i in batch.items for name, texts in i.models}
        parcel = Parcel(
            cases=tuple(i.case for i in batch.items),
            models=tuple(models.items()),
            settings=job.settings,
            task=job.task,
            lost=job.lost,
            version=version(),
        )
        key = f"mcheck-{self._name}-{self._sent}"
        self._sent += 1
        data = pickle.dumps(parcel, pickle.HIGHEST_PROTOCOL)
        self._pending[key] = batch
        batch.future = self._cluster.client().submit(
            work, data, key=key, pure=False, priority=-batch.items[0].index, retries=0
        )
        batch.future.add_done_callback(lambda future: self._done.put(future.key))

    def _received(self, batches: Batches) -> Iterator[tuple[int, T]]:
        """The results of the next finished batch; empty if none finishes for a while."""
        if not self._pending:
            return
        try:
            key = self._done.get(timeout=GLANCE)
        except queue.Empty:
            return
        batch = self._pending.get(key)
        if batch is None or batch.future is None:
            return
        status = batch.future.status
        if status == "pending":  # whoever had its results was lost: it is on its way again
            batch.future.add_done_callback(lambda future: self._done.put(future.key))
            return
        del self._pending[key]
        if status == "error":
            yield from self._failed(batch)
            return
        try:
            done = batch.future.result(timeout=60) if status == "finished" else None
        except Exception:  # noqa: BLE001 - cancelled, or lost on the way: whatever it is, the tests are done again
            done = None
        if done is None:
            self._again.append(batch)
            return
        if isinstance(done, VersionMismatch):
            raise InputError(
                "a worker runs another version of mcheck", hint="install the same version wherever a worker runs"
            )
        assert isinstance(done, Done)
        batches.record_time(batch.items, done.seconds)
        for i, data in zip(batch.items, done.results, strict=True):
            yield i.index, pickle.loads(data)  # noqa: S301 - from a worker, which Dask trusts with more than this

    def _failed(self, batch: _Batch) -> Iterator[tuple[int, T]]:
        """Handles a batch that ended in an exception: its workers died, or mcheck has a bug."""
        from distributed import KilledWorker

        assert batch.future is not None
        problem = batch.future.exception()
        if isinstance(problem, ModuleNotFoundError):
            raise InputError(
                f"mcheck is not installed on a worker: {problem}", hint="install mcheck wherever a worker runs"
            )
        if not isinstance(problem, KilledWorker):
            raise problem
        if len(batch.items) > 1:
            self._again += [_Batch([i], batch.attempt + 1) for i in reversed(batch.items)]
            return
        (only,) = batch.items
        reason = Reason(Cause.DIED, "every worker that ran the test died; giving up")
        yield only.index, self._job.lost(only.case, self._job.settings, reason, 0.0)

    def _reconnect(self) -> None:
        """Renews the connection and sends the batches in flight again, the first tests first."""
        self._cluster.drop()
        self._cluster.client()
        self._again += sorted(self._pending.values(), key=lambda b: -b.items[0].index)
        self._pending.clear()
