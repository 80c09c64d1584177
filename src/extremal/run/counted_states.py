"""What a checkpoint keeps of the two wrappers that count, and how they take it back."""

from __future__ import annotations

from typing import Any

from extremal.gradients.base import Counting

CHANGING = "expanded", "_shares", "notes", "_batch", "_looked", "near", "_drawn"  # what changes in an objective during a run


class KeptObjective(Counting):
    """The base of the objective that counts."""

    inner: Any
    columns: Any
    bends: Any
    _drawn: Any  # of a sample: the whole, its size, and its rows

    def saved_state(self) -> dict[str, Any]:
        """What a checkpoint keeps of it; a sample is drawn again."""
        bends = vars(self).get("bends")
        kept: dict[str, Any] = {name: getattr(self, name) for name in CHANGING}
        kept |= {"inner": self.inner if self._drawn is None else None, "calls": self.calls}
        return kept | {"columns": self.columns, "peaks": vars(bends).get("peaks") if bends is not None else None}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Take a saved state; an object that was just made is set up first."""
        if "inner" not in vars(self):
            whole, size, rows = state["_drawn"] or (None, 0, None)
            inner = state["inner"] if whole is None else whole.inner.sampled(size, lambda: rows)
            type(self).__init__(self, inner, state["calls"], state["columns"])  # type: ignore[call-arg]
        for name in CHANGING:
            setattr(self, name, state[name])
        if state["peaks"] is not None:
            vars(self.bends)["peaks"] = state["peaks"]


class KeptSet:
    """The base of the set that counts."""

    inner: Any
    calls: Any
    _g: Any
    _s: Any
    _lent: bool

    def saved_state(self) -> dict[str, Any]:
        """What a checkpoint keeps of it: the last question and its answer, with what a warm oracle keeps of the answer."""
        kept = {"inner": self.inner, "calls": self.calls, "_g": self._g, "_s": self._s, "_lent": self._lent}
        return kept | {"basis": bases().kept_of(self.inner, self._s) if "_program" in vars(self.inner) else None}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Take a saved state."""
        vars(self).update({name: state[name] for name in ("inner", "calls", "_g", "_s", "_lent")})
        if state["basis"] is not None:
            bases().give(self.inner, self._s, state["basis"])


def bases() -> Any:
    """The bases of linear programs, for polytopes only."""
    from extremal.sets.polytopes import bases

    return bases
