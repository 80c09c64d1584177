"""How agents on a graph hear of each other's vectors: plainly, or by compressed differences with error compensation.

Koloskova, Stich, Jaggi (2019), Decentralized stochastic optimization and gossip algorithms with compressed communication,
arXiv:1902.00340, CHOCO-Gossip; each agent keeps two vectors, whatever the number of its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.gradients.base import count_sent
from extremal.gradients.compressors import as_compressor
from extremal.gradients.messages import Compressor, Message, contracted, whole_message, whole_vector
from extremal.gradients.mixing import mixed
from extremal.objectives.base import GRADIENT_NOISE, Sampler


@dataclass(frozen=True)
class Heard:
    """What an agent and its neighbours know of each other's vectors."""

    own: np.ndarray  # vh_i, which its neighbours know of v_i
    near: np.ndarray  # sum_j c_ij vh_j


@dataclass(frozen=True, eq=False)
class Gossip:
    """An exchange of the vectors v_i of all agents, after which agent i has an average of its neighbours'.

        without a compressor:   sum_j c_ij v_j
        with a compressor:      q_i = C(v_i - vh_i),   vh_j <- vh_j + q_j,   v_i + rate sum_j c_ij (vh_j - vh_i)

    Both keep the mean of the v_i, for any C.
    """

    mixing: np.ndarray
    compressor: Compressor | None = None
    rate: float | None = None  # left out: the contraction of the compressor
    stream: int = GRADIENT_NOISE  # of the draws of compressors

    def start(self, v: np.ndarray, common: bool) -> Heard | None:
        """What agent i knows at the start: the vector of all agents, if they have a common one, or nothing."""
        if self.compressor is None:
            return None
        return Heard(v, v) if common else Heard(np.zeros_like(v), np.zeros_like(v))

    def say(self, k: int, v: np.ndarray, known: Heard | None, sampler: Sampler) -> Message:
        """The message of step k of an agent to all its neighbours."""
        if self.compressor is None or known is None:
            return whole_message(v)
        return self.compressor.compress(v - known.own, sampler.noise(k, self.stream))

    def hear(self, i: int, v: np.ndarray, known: Heard | None, said: Mapping[int, Message]) -> tuple[np.ndarray, Heard | None]:
        """The average of agent i, from the messages of all that it hears and its own."""
        row, C = self.mixing[i], self.compressor
        if C is None or known is None:
            heard = {j: v if j == i else whole_vector(message, v.shape).astype(v.dtype) for j, message in said.items()}
            return mixed(row, heard), None
        q = {j: contracted(C, message, v.shape) for j, message in said.items()}
        new = Heard(known.own + q[i], known.near + mixed(row, q))
        rate = C.alpha(v.size) if self.rate is None else self.rate
        return v + rate * (new.near - new.own), new

    def listeners(self, i: int) -> list[int]:
        """The agents that hear agent i."""
        return [j for j in np.flatnonzero(self.mixing[:, i]).tolist() if j != i]

    def round(
        self, f: object, k: int, vectors: np.ndarray, known: Sequence[Heard | None], draws: Sequence[Sampler]
    ) -> tuple[np.ndarray, tuple[Heard | None, ...]]:
        """One exchange of all agents in one process; f counts the messages, once for every receiver."""
        said = [self.say(k, v, known[i], draws[i]) for i, v in enumerate(vectors)]
        for i, message in enumerate(said):
            times = len(self.listeners(i))
            count_sent(f, times * message.numbers, times * len(message.payload))
        heard = [self.hear(i, v, known[i], self.to(i, said)) for i, v in enumerate(vectors)]
        return np.stack([v for v, _ in heard]), tuple(new for _, new in heard)

    def to(self, i: int, said: Sequence[Message]) -> dict[int, Message]:
        """The messages that agent i hears, its own included."""
        return {j: said[j] for j in {i, *np.flatnonzero(self.mixing[i]).tolist()}}


def check_exchange(call: str, compressor: Any, rate: Any) -> dict[str, Any]:
    """The checked compressor and rate of agents."""
    if rate is not None:
        rate = checks.within(call, "rate", rate, 0, 1)
    return {"compressor": None if compressor is None else as_compressor(call, compressor), "rate": rate}


def as_arguments(compressor: Compressor | None, rate: float | None) -> str:
    """The compressor and the rate as arguments of a repr, if there are any."""
    given = {"compressor": compressor, "rate": rate}
    return "".join(f", {name}={value!r}" for name, value in given.items() if value is not None)
