"""Workers that send compressed estimates to a server: EF21, with error feedback, and MARINA, with rare whole vectors.

Richtarik, Sokolov, Fatkhullin (2021), EF21: a new, simpler, theoretically better, and practically faster error feedback,
arXiv:2106.05203; Gorbunov, Burlachenko, Li, Richtarik (2021), MARINA: faster non-convex distributed learning with compression,
arXiv:2102.07845.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Estimate, Facts, InEpochs, Phase, SomeGradient, Steps, Wrapper, batched, count_sent, phase_of
from extremal.gradients.batches import MiniBatch
from extremal.gradients.compressors import as_compressor
from extremal.gradients.messages import Message, contracted, whole_message, whole_vector
from extremal.gradients.workers import Worker, shared_facts
from extremal.objectives.base import GRADIENT_NOISE, SYNCS, Objective, Sampler


@dataclass(frozen=True)
class WorkerState:
    """The state of one worker."""

    own: Estimate  # the state of its estimator
    kept: np.ndarray  # g_i for EF21, y_i for MARINA


@dataclass(frozen=True)
class CompressedEstimate(InEpochs):
    """What the server knows, and the states of all workers."""

    g: np.ndarray  # the server's estimate of grad f
    states: tuple[WorkerState, ...]
    samplers: tuple[Sampler, ...]  # the streams of the workers
    exact: bool = False
    phase: Phase | None = None  # position of the workers in their epoch; they move in step


class ByWorkers(Wrapper[CompressedEstimate]):
    """Shared part: m workers estimate at the same point, and send messages to a server.

    A worker reports by ``first`` and ``report``, and the server learns by ``told``, in one process as on a cluster.
    """

    gradient: SomeGradient
    compressor: Any
    workers: int

    def __post_init__(self):
        super().__post_init__()
        call = type(self).__name__
        checks.fix(self, compressor=as_compressor(call, self.compressor), workers=checks.whole(call, "workers", self.workers, 1))

    def facts(self, n: int) -> Facts:
        """The sum of the workers' costs. No constant is known for steps."""
        return shared_facts(type(self).__name__, "workers", "worker", self.gradient, self.workers, n, d=False)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> CompressedEstimate:
        crew = [self.worker(f, i, seed=sampler.seed, shard=sampler.shard) for i in range(self.workers)]
        found = [self.first(worker, x) for worker in crew]
        return self._received(f, None, x.shape, True, found, tuple(worker.sampler for worker in crew))

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: CompressedEstimate, sampler: Sampler
    ) -> CompressedEstimate:
        draws, whole = state.samplers, self.whole(k + 1, sampler)
        crew = [self.worker(f, i, draws[i]) for i in range(self.workers)]
        found = [self.report(w, k, x_prev, x, old, whole) for w, old in zip(crew, state.states, strict=True)]
        return self._received(f, state.g, x.shape, whole, found, draws)

    def _received(
        self,
        f: Objective,
        g: np.ndarray | None,
        shape: tuple[int, ...],
        whole: bool,
        found: list[tuple[Message, WorkerState]],
        draws: tuple[Sampler, ...],
    ) -> CompressedEstimate:
        said, states = tuple(message for message, _ in found), tuple(state for _, state in found)
        return CompressedEstimate(self.told(f, g, shape, whole, said), states, draws, phase=phase_of(states[0].own))

    def worker(self, f: Objective, i: int, sampler: Sampler | None = None, seed: int = 0, shard: int = 0) -> Worker:
        """Worker i."""
        return Worker.of(self.gradient, self.workers, f, i, sampler, seed, shard)

    def first(self, worker: Worker, x: np.ndarray) -> tuple[Message, WorkerState]:
        """A worker's message about the starting point, and its state."""
        own, y = worker.init(x)
        return self._said(worker, 0, own, np.asarray(y), None, whole=True)

    def report(
        self, worker: Worker, k: int, x_prev: np.ndarray, x: np.ndarray, state: WorkerState, whole: bool
    ) -> tuple[Message, WorkerState]:
        """A worker's message after step k, and its state."""
        own, y = worker.update(k, x_prev, x, state.own)
        return self._said(worker, k + 1, own, np.asarray(y), state.kept, whole)

    def told(self, f: object, g: np.ndarray | None, shape: tuple[int, ...], whole: bool, said: Sequence[Message]) -> np.ndarray:
        """The server's g after all messages, which f counts."""
        count_sent(f, sum(message.numbers for message in said), sum(len(message.payload) for message in said))
        mean = np.stack([self.expanded(message, shape, whole) for message in said]).mean(axis=0)
        return mean if g is None or (whole and self.anew) else g + mean

    def whole(self, j: int, sampler: Sampler) -> bool:
        """Whether all workers send whole vectors about iterate j."""
        return False

    anew: ClassVar[bool]  # whether whole vectors replace the server's estimate

    @abstractmethod
    def expanded(self, message: Message, shape: tuple[int, ...], whole: bool) -> np.ndarray:
        """The vector of a message."""

    @abstractmethod
    def _said(
        self, worker: Worker, j: int, own: Estimate, y: np.ndarray, kept: np.ndarray | None, whole: bool
    ) -> tuple[Message, WorkerState]:
        """The message about iterate j of a worker whose estimate is y, and its state."""


@dataclass(frozen=True)
class EF21(ByWorkers):
    """Error feedback: each worker sends the compressed difference between its estimate and what the server knows of it.

        g_i <- g_i + C(y_i - g_i),   g = (1/m) sum_i g_i,   g_i = C(y_i) at the start

    y_i is worker i's estimate of grad f_i at the current x, from its own rows [n i/m, n (i+1)/m), and the mean of the f_i is f.
    C is contractive; unbiased compressors are divided by 1 + omega. The error of g vanishes with the steps if that of the y_i
    does: |g_i - y_i| <= sqrt(1 - alpha) (|g_i,prev - y_i,prev| + |y_i - y_i,prev|) for TopK. Cost: m estimators on n/m components
    each, m messages an iteration, and one vector more for each worker. Messages to the workers are not counted: each gets the
    vertex of the step, whatever the compressor.

    Parameters
    ----------
    gradient : Gradient
        The estimator of each worker: `Full`, `Sarah`, `Saga`, ...; the noise of a `MiniBatch` does not vanish.
    compressor : Compressor or str
        C: `TopK`, `RandomK`, `Natural`, or their names "top-10", "random-10", "natural".
    workers : int
        m, at most one for each component.

    References
    ----------
    Richtarik, Sokolov, Fatkhullin (2021), arXiv:2106.05203; Fatkhullin, Sokolov, Gorbunov, Li, Richtarik (2021),
    arXiv:2110.03294, with stochastic and variance-reduced estimators.

    Examples
    --------
    >>> import extremal as ex
    >>> EF21(ex.gradients.Full(), ex.gradients.TopK(10), workers=4).facts(100).per_step
    100
    """

    gradient: SomeGradient
    compressor: Any
    workers: int = 4
    anew: ClassVar[bool] = False

    def expanded(self, message: Message, shape: tuple[int, ...], whole: bool) -> np.ndarray:
        """C(y_i - g_i), divided by 1 + omega."""
        return contracted(self.compressor, message, shape)

    def _said(
        self, worker: Worker, j: int, own: Estimate, y: np.ndarray, kept: np.ndarray | None, whole: bool
    ) -> tuple[Message, WorkerState]:
        old = np.zeros_like(y) if kept is None else kept
        message = self.compressor.compress(y - old, worker.sampler.noise(j, GRADIENT_NOISE))
        return message, WorkerState(own, old + self.expanded(message, y.shape, whole))  # g_i + C(y_i - g_i)


@dataclass(frozen=True)
class Marina(ByWorkers):
    """Compressed differences of consecutive estimates, and whole vectors with probability p.

        g = (1/m) sum_i y_i                          with probability p, and at the start: whole vectors
        g = g_prev + (1/m) sum_i Q(y_i - y_i,prev)   otherwise

    y_i is worker i's estimate of grad f_i at the current x, from its own rows [n i/m, n (i+1)/m), and the mean of the f_i is f.
    Q is unbiased. With `Full` this is MARINA; with `Sarah` differences are those of a batch, as in VR-MARINA. Cost: m estimators
    on n/m components each, m messages an iteration, and one vector more for each worker. Messages to the workers are not counted:
    each gets the vertex of the step, whatever the compressor.

    Parameters
    ----------
    gradient : Gradient
        The estimator of each worker. A `MiniBatch` of one size is refused: its noise would add up between whole vectors.
    compressor : Compressor or str
        Q: `RandomK`, `Natural`, or their names "random-10", "natural"; `TopK` is not unbiased, and refused.
    p : float
        Probability of whole vectors, in (0, 1].
    workers : int
        m, at most one for each component.

    References
    ----------
    Gorbunov, Burlachenko, Li, Richtarik (2021), arXiv:2102.07845.

    Examples
    --------
    >>> import extremal as ex
    >>> Marina(ex.gradients.Full(), ex.gradients.RandomK(10), p=0.1, workers=4).facts(100).per_step
    100
    """

    gradient: SomeGradient
    compressor: Any
    p: float
    workers: int = 4
    anew: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        checks.fix(self, p=checks.within("Marina", "p", self.p, 0, 1))
        if self.compressor.omega(1) is None:
            raise InputError(
                f"`Marina(compressor=...)` must be unbiased, such as RandomK(10) or Natural(), got {self.compressor}"
            )
        drawn = batched(self.gradient)
        if isinstance(drawn, MiniBatch) and isinstance(drawn.batch, int):
            raise InputError(
                f"Marina cannot run {drawn}: differences of independent batches do not vanish, and their errors add up"
            )

    def expanded(self, message: Message, shape: tuple[int, ...], whole: bool) -> np.ndarray:
        """y_i, or Q(y_i - y_i,prev)."""
        return whole_vector(message, shape) if whole else self.compressor.expand(message, shape)

    def _said(
        self, worker: Worker, j: int, own: Estimate, y: np.ndarray, kept: np.ndarray | None, whole: bool
    ) -> tuple[Message, WorkerState]:
        if whole or kept is None:
            return whole_message(y), WorkerState(own, y)
        return self.compressor.compress(y - kept, worker.sampler.noise(j, GRADIENT_NOISE)), WorkerState(own, y)

    def whole(self, j: int, sampler: Sampler) -> bool:
        """A coin for all workers."""
        return bool(sampler.noise(j, SYNCS).random() < self.p)
