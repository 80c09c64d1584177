"""Runs that are killed between iterations and called again, again and again, until they are done."""

from __future__ import annotations

import numpy as np

import extremal as ex
from extremal.run.checkpoints.keeper import Keeper


class Killed(BaseException):
    """Nobody catches it, as nobody catches a SIGKILL."""


class Hand:
    """Kills a run after some states that it has saved: 1 stops at every state."""

    def __init__(self, monkeypatch, seed: int = 0, most: int = 3):
        self.rng, self.most, self.kills, self.left = np.random.default_rng(seed), most, 0, 0
        look = Keeper.look

        def looked(keeper, driver, state):
            look(keeper, driver, state)
            self.left -= 1
            if self.left == 0:
                raise Killed

        monkeypatch.setattr(Keeper, "look", looked)

    def finish(self, call, most_kills: int = 300):
        """Call until an answer comes; ``call`` makes its problem anew each time."""
        self.kills = 0
        while True:
            self.left = int(self.rng.integers(1, self.most + 1)) if self.kills < most_kills else -1
            try:
                return call()
            except Killed:
                self.kills += 1


def bits(r: ex.Result) -> dict[str, object]:
    """All that must be equal: every number, but seconds."""
    found = {name: getattr(r, name) for name in ("value", "gap", "status", "converged", "n_iter", "calls", "why", "compiled")}
    trace = {name: r.trace[name].tobytes() for name in ("iter", "grads", "lmos", "value", "gap")} if len(r.trace) else {}
    atoms = None if r.atoms is None else (np.asarray(r.atoms.weights).tobytes(), [v.key for v in r.atoms.vertices])
    x = np.asarray(r.x)
    x = x.tolist() if x.dtype == object else x.tobytes()
    return found | trace | {"x": x, "method": str(r.method), "atoms": atoms, "rows": len(r.trace)}


def difference(a: ex.Result, b: ex.Result) -> list[str]:
    """The names of all that is not equal."""
    one, two = bits(a), bits(b)
    return [name for name in one.keys() | two.keys() if one.get(name) != two.get(name)]
