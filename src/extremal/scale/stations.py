"""Workers of EF21 and MARINA that are processes: each has its own rows, and sends compressed messages to the driver.

The driver is the server. Its estimator asks the workers, so the loop, the move, the step and the certificates are those of
`minimize`, and the workers take their part by the functions that the simulation also calls.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client

from extremal import checks
from extremal.checks import InputError
from extremal.files.shards.directory import ShardDir
from extremal.gradients.base import Facts, Gradient, InEpochs, Phase, PlainEstimate, Steps, phase_of
from extremal.gradients.compressed import ByWorkers
from extremal.losses.base import Loss
from extremal.methods.compressed import EF21FW
from extremal.methods.method import Budget, Recipe
from extremal.objectives.base import Objective, Sampler
from extremal.objectives.linear import LinearModel
from extremal.points.iterates import freeze
from extremal.run.counting import CountedObjective
from extremal.run.front import minimize
from extremal.run.result import Calls, Result
from extremal.scale.cluster import ClusterError, Link, Lost, Workers
from extremal.scale.host import Answers
from extremal.scale.wire import pack, unpack
from extremal.sets.base import ConvexSet

CALLED = "run_workers"


def run_workers(
    loss: Loss,
    directory: str | Path,
    C: ConvexSet,
    client: Client,
    method: Recipe | None = None,
    *,
    max_iter: int = 100,
    seed: int = 0,
    timeout: float = 5.0,
) -> Result:
    """Run `EF21FW` or `MarinaFW` with a process for each worker, on a Dask cluster.

    Worker i reads only its own rows of the directory. It gets x from the driver, and answers with its compressed message. The
    trajectory is that of ``minimize(LinearModel(loss, ShardDir(directory)), C, method)`` with the same seed, bit by bit, and so
    are ``calls.grads``, ``calls.numbers`` and ``calls.bytes``. Certificates are computed in this process, which also has to see
    the directory. A worker that is lost ends the run with a `ClusterError`.

    Parameters
    ----------
    loss : Loss
        A loss of one margin.
    directory : path
        A directory of shards that all workers see.
    C : ConvexSet
        The set; the driver calls its oracle.
    client : distributed.Client
        The processes live on the workers of this client, several on each if there are fewer.
    method : EF21FW or MarinaFW, optional
        Default: `EF21FW`. Any method whose estimator is `EF21` or `Marina` is accepted.
    max_iter, seed : int
        As for `minimize`.
    timeout : float
        The seconds that a process may be silent.

    References
    ----------
    Richtarik, Sokolov, Fatkhullin (2021), arXiv:2106.05203; Gorbunov, Burlachenko, Li, Richtarik (2021), arXiv:2102.07845.
    """
    workers = Workers(client, checks.positive(CALLED, "timeout", timeout), CALLED)
    f = LinearModel(loss, ShardDir(directory, engine="disk"))
    prepared = (method or EF21FW()).prepare(f, C.on(f.shape), Budget(max_iter=max_iter))
    if not isinstance(prepared.gradient, ByWorkers):
        raise InputError(f"`{CALLED}(method=...)` must be EF21FW(), MarinaFW(), or a method of EF21 or Marina, got {prepared}")
    remote = Remote(prepared.gradient, Stations(workers, prepared.gradient, str(Path(directory).resolve()), loss, seed))
    return minimize(f, C, replace(prepared, gradient=remote), max_iter=max_iter, seed=seed, tol=0, atol=0)


class Station(Answers):
    """A worker that lives in its own process: its rows, its draws and its state."""

    def __init__(self, i: int, estimator: ByWorkers, directory: str, loss: Loss, seed: int):
        data = ShardDir(directory, engine="disk")
        f = CountedObjective(LinearModel(loss, data, data.targets, data.weights), Calls())
        self.estimator, self.calls = estimator, f.calls
        self.worker = estimator.worker(f, i, seed=seed)  # type: ignore[arg-type]

    def _done(self, order: str, head: bytes, buffers: list[Any]) -> Any:
        orders = {"first": self.first, "report": self.report}
        before = replace(self.calls)
        message = orders[order](*unpack(head, buffers))
        return message, self.calls.grads - before.grads, self.calls.rows - before.rows, phase_of(self.state.own)

    def first(self, x: np.ndarray) -> Any:
        """The message about the starting point."""
        self.x = freeze(x)
        message, self.state = self.estimator.first(self.worker, self.x)
        return message

    def report(self, k: int, x: np.ndarray, whole: bool) -> Any:
        """The message after step k, which has led to x."""
        old, self.x = self.x, freeze(x)
        message, self.state = self.estimator.report(self.worker, k, old, self.x, self.state, whole)
        return message


class Stations:
    """All workers from the driver's view."""

    def __init__(self, workers: Workers, estimator: ByWorkers, *given: Any):
        self.workers, self.links = workers, list[Link]()
        for i in range(estimator.workers):
            address = workers.least_busy(self.links)
            self.links.append(workers.asked(address, f"worker-{i}", Station, i, estimator, *given))
        for i in range(len(self.links)):
            self._of(i, workers.made)

    def ask(self, order: str, *given: Any) -> list[Any]:
        """The answers of all workers, which work in parallel."""
        message = pack(given)
        calls = [self._of(i, self.workers.call, order, message) for i in range(len(self.links))]
        try:
            return [self._of(i, self.workers.answer, call) for i, call in enumerate(calls)]
        except ClusterError:
            wait(calls, self.workers.timeout)
            raise

    def _of(self, i: int, ask: Callable[..., Any], *given: Any) -> Any:
        """Ask something of worker i."""
        try:
            return ask(self.links[i], *given)
        except Lost as loss:
            raise ClusterError(f"`{CALLED}`: worker {i} is lost ({loss}); start the run again") from None


@dataclass(frozen=True)
class RemoteEstimate(PlainEstimate, InEpochs):
    """What the server knows."""

    phase: Phase | None = None


@dataclass(frozen=True, eq=False)
class Remote(Gradient[RemoteEstimate]):
    """EF21 or MARINA at the server: it asks the workers for their messages."""

    estimator: ByWorkers
    stations: Stations

    def __repr__(self) -> str:
        return repr(self.estimator)

    def facts(self, n: int) -> Facts:
        """The facts of the estimator."""
        return self.estimator.facts(n)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> RemoteEstimate:
        """The mean of the first messages."""
        return self._told(f, None, x, True, self.stations.ask("first", x))

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: RemoteEstimate, sampler: Sampler
    ) -> RemoteEstimate:
        """The estimate after the messages about x."""
        whole = self.estimator.whole(k + 1, sampler)
        return self._told(f, state.g, x, whole, self.stations.ask("report", k, x, whole))

    def _told(self, f: Any, g: np.ndarray | None, x: np.ndarray, whole: bool, answers: list[Any]) -> RemoteEstimate:
        f.calls.grads += sum(grads for _, grads, _, _ in answers)
        f.calls.rows += sum(rows for _, _, rows, _ in answers)
        new = self.estimator.told(f, g, x.shape, whole, [message for message, _, _, _ in answers])
        return RemoteEstimate(new, exact=False, phase=answers[0][3])
