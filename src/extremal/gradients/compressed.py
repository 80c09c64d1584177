"""Workers that send compressed estimates to a server: EF21, with error feedback, and MARINA, with rare whole vectors.

Richtarik, Sokolov, Fatkhullin (2021), EF21: a new, simpler, theoretically better, and practically faster error feedback,
arXiv:2106.05203; Gorbunov, Burlachenko, Li, Richtarik (2021), MARINA: faster non-convex distributed learning with compression,
arXiv:2102.07845.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Estimate, Facts, InEpochs, Phase, SomeGradient, Steps, Wrapper, batched, count_sent, phase_of
from extremal.gradients.batches import MiniBatch
from extremal.gradients.compressors import UNCHANGED, Message, as_compressor, contracted
from extremal.gradients.workers import Worker, shared_facts
from extremal.objectives.base import GRADIENT_NOISE, SYNCS, Objective, Sampler


@dataclass(frozen=True)
class CompressedEstimate(InEpochs):
    """The states of all workers, and what the server knows."""

    g: np.ndarray  # the server's estimate of grad f
    kept: np.ndarray  # a vector of each worker, (m, *shape): g_i for EF21, y_i for MARINA
    own: tuple[Estimate, ...]  # the states of the workers' estimators
    samplers: tuple[Sampler, ...]  # their streams
    exact: bool = False
    phase: Phase | None = None  # position of the workers in their epoch; they move in step


class ByWorkers(Wrapper[CompressedEstimate]):
    """Shared part: m workers estimate at the same point, and send messages to a server."""

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
        m = self.workers
        crew = [Worker.of(self.gradient, m, f, i, seed=sampler.seed, shard=sampler.shard) for i in range(m)]
        found = [worker.init(x) for worker in crew]
        return self._received(f, found, tuple(worker.sampler for worker in crew), None, 0, False)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: CompressedEstimate, sampler: Sampler
    ) -> CompressedEstimate:
        draws, m = state.samplers, self.workers
        crew = [Worker.of(self.gradient, m, f, i, draws[i]) for i in range(m)]
        found = [worker.update(k, x_prev, x, own) for worker, own in zip(crew, state.own, strict=True)]
        return self._received(f, found, draws, state, k + 1, self._whole(k + 1, sampler))

    def _received(
        self,
        f: Objective,
        found: list[tuple[Estimate, np.ndarray]],
        draws: tuple[Sampler, ...],
        state: CompressedEstimate | None,
        j: int,
        whole: bool,
    ) -> CompressedEstimate:
        """The estimate after all messages of iterate j; f counts them."""
        kept = [None] * len(found) if state is None else list(state.kept)
        noise = [sampler.noise(j, GRADIENT_NOISE) for sampler in draws]
        said = [self.say(y, old, whole, rng) for (_, y), old, rng in zip(found, kept, noise, strict=True)]
        count_sent(f, sum(message.numbers for message in said), sum(len(message.payload) for message in said))
        y = np.stack([y for _, y in found])
        g, new = self.receive(y, state, whole, said)
        own = tuple(own for own, _ in found)
        return CompressedEstimate(g, new, own, draws, phase=phase_of(own[0]))

    def _whole(self, j: int, sampler: Sampler) -> bool:
        """Whether all workers send whole vectors about iterate j."""
        return False

    @abstractmethod
    def say(self, y: np.ndarray, kept: np.ndarray | None, whole: bool, noise: np.random.Generator) -> Message:
        """The message of a worker that keeps a vector, about its new estimate y."""

    @abstractmethod
    def receive(
        self, y: np.ndarray, state: CompressedEstimate | None, whole: bool, said: Sequence[Message]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The server's g, and the vectors that the workers keep; the estimates y stay with the workers."""


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

    def say(self, y: np.ndarray, kept: np.ndarray | None, whole: bool, noise: np.random.Generator) -> Message:
        """C(y_i - g_i)."""
        return self.compressor.compress(y if kept is None else y - kept, noise)

    def receive(
        self, y: np.ndarray, state: CompressedEstimate | None, whole: bool, said: Sequence[Message]
    ) -> tuple[np.ndarray, np.ndarray]:
        """All g_i after the messages, and their mean."""
        moved = np.stack([contracted(self.compressor, message, y.shape[1:]) for message in said])
        kept = moved if state is None else state.kept + moved  # g_i + C(y_i - g_i)
        return kept.mean(axis=0), kept


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

    def say(self, y: np.ndarray, kept: np.ndarray | None, whole: bool, noise: np.random.Generator) -> Message:
        """y_i itself, or Q(y_i - y_i,prev)."""
        return UNCHANGED.compress(y, noise) if whole or kept is None else self.compressor.compress(y - kept, noise)

    def receive(
        self, y: np.ndarray, state: CompressedEstimate | None, whole: bool, said: Sequence[Message]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The mean of whole vectors, or g_prev and the mean of the differences; workers keep their y_i."""
        first = whole or state is None
        found = np.stack([(UNCHANGED if first else self.compressor).expand(message, y.shape[1:]) for message in said]).mean(
            axis=0
        )
        return (found if state is None or whole else state.g + found), y

    def _whole(self, j: int, sampler: Sampler) -> bool:
        return bool(sampler.noise(j, SYNCS).random() < self.p)
