"""What is checked of one random problem."""

from __future__ import annotations

import math
import threading
import time
import traceback
from typing import Any

import numpy as np
from problems import Problem, problem
from problems_exact import gap_of
from problems_later import broken_by
from problems_sets import Region, length, total, wide
from scipy.optimize import nnls

import extremal as ex
from extremal.checks import InputError, NonFiniteError

SECONDS = 20.0
INSIDE = 1e-9
TIMES, THREADS = 0.04, 0.02  # shares of problems that are solved three times; by ten threads at once


def outcome(seed: int, index: int) -> dict[str, Any]:
    """All that there is to say of a problem; ``flags`` are what is wrong."""
    found: dict[str, Any] = {"seed": seed, "index": index, "flags": []}
    try:
        p = problem(seed, index)
    except InputError as error:
        return found | {"refused": f"at construction: {error}", "set": "refused", "loss": "?"}
    except Warning as error:
        return found | {
            "flags": ["warning"],
            "error": f"at construction: {traceback.format_exc(limit=-4)}",
            "set": "?",
            "loss": str(error),
        }
    except Exception:
        return found | {
            "flags": ["crash"],
            "error": f"at construction: {traceback.format_exc(limit=-4)}",
            "set": "?",
            "loss": "?",
        }
    found |= p.words
    try:
        r, found["cpu"] = timed(p)
        if found["cpu"] > SECONDS:  # it may have compiled
            r, found["cpu"] = timed(p)
    except (InputError, NonFiniteError) as error:
        return found | refusal(p, error)
    except Warning:
        return found | {"flags": ["warning"], "error": traceback.format_exc(limit=-6)}
    except Exception:
        return found | {"flags": ["crash"], "error": traceback.format_exc(limit=-6)}
    with np.errstate(all="ignore"):
        judge(p, r, found)
    return found


def words_of(seed: int, index: int) -> dict[str, Any]:
    """What the problem is, for one that does not come back."""
    try:
        return problem(seed, index).words
    except Exception as error:
        return {"set": "?", "loss": "?", "error": repr(error)}


def timed(p: Problem) -> tuple[ex.Result, float]:
    start = time.process_time()
    return solve(p), time.process_time() - start


def solve(p: Problem, f: Any = None) -> ex.Result:
    return ex.minimize(p.f if f is None else f, p.region.C, **p.options)


def refusal(p: Problem, error: Exception) -> dict[str, Any]:
    """Methods by name may refuse what does not suit them, and anyone numbers near the ends of float64."""
    fine = (p.hostile or "method" in p.options) and "left the set" not in str(error)
    return {"refused": str(error)} if fine else {"flags": ["crash"], "error": f"{type(error).__name__}: {error}"}


def judge(p: Problem, r: ex.Result, found: dict[str, Any]) -> None:
    flags = found["flags"]
    x = np.asarray(r.x)
    found |= {
        "chosen": r.why.split(":")[0] or p.words["method"], "status": r.status.value, "converged": r.converged, "value": r.value,
        "gap": r.gap, "iterations": r.n_iter, "said": str(getattr(r, "message", "") or r.status.sentence),
    }  # fmt: skip
    if found["cpu"] > SECONDS:
        flags.append("slow")
    found["outside"] = outside(p, x)
    if not found["outside"] <= INSIDE:
        flags.append("outside")
    if not p.hostile:
        certificate(p, r, found)
    elif not (math.isfinite(r.gap) and math.isfinite(r.value)) and (r.converged or r.status == "gap"):
        flags.append("infinite")
    repeat(p, r, found)


def outside(p: Problem, x: np.ndarray) -> float:
    """Relative to the size of the set; where no definition can be computed, how far a linear form separates the point."""
    if not np.isfinite(x).all():
        return math.inf
    if p.region.outside is not None:
        return max(0.0, float(p.region.outside(wide(x))))
    if p.region.C.contains(x.astype(np.float64), INSIDE):
        return 0.0
    return math.inf if p.region.least is None else separation(p.region, x)


def separation(region: Region, x: np.ndarray, steps: int = 60) -> float:
    """max over some g of min over s of <g, s - x> / |g|, relative to |x|: positive only if x is outside."""
    flat, size = wide(x), float(np.abs(x).max()) or 1.0
    z, rows, most = (flat / size).astype(np.float64), [], 0.0
    g = np.ones(len(z))
    for _ in range(steps):
        most = max(most, float((region.least(wide(g)) - total(wide(g) * flat)) / length(wide(g))) / size)
        rows.append(region.C.lmo(g.reshape(x.shape)).to_array().reshape(-1) / size)
        heavy = 1e3 * max(1.0, float(np.abs(rows[-1]).max()))
        w, _ = nnls(np.vstack([np.array(rows).T, np.full(len(rows), heavy)]), np.append(z, heavy), maxiter=10_000)
        g = np.array(rows).T @ (w / max(w.sum(), 1e-300)) - z
        if not np.abs(g).max() > 1e-12:
            break
    return most


def certificate(p: Problem, r: ex.Result, found: dict[str, Any]) -> None:
    """Value, gap and what was reached, against extended precision."""
    flags = found["flags"]
    x = np.asarray(r.x, np.float64)
    near = p.f.intercept(x) if p.exact.intercept else 0.0
    look = p.exact.at(x, near)
    gap, slack, floor = gap_of(p.region, x, look)
    level = 1e-11 if p.exact.intercept else 1e-13  # the best intercept may be at infinity, for a class that has no rows
    value_slack = look.value_error + level * abs(float(look.value)) + 1e-14
    found |= {"true_value": float(look.value), "true_gap": gap, "slack": slack, "floor": floor}
    if not abs(r.value - float(look.value)) <= value_slack:
        flags.append("false value")
        found["value_slack"] = value_slack
    if not r.gap >= gap - slack:
        flags.append("false gap")
    if isinstance(p.region.C, ex.AffineCut):
        cut_short(p.region.C, r, x, found)
        return
    if not math.isfinite(r.gap):
        flags.append("infinite")
    if p.words["method"] != "auto":
        return
    found["judged"] = True
    wanted = p.tol * abs(r.value) + 1e-10
    found["impossible"] = bool(floor > wanted)
    if not r.converged and not found["impossible"]:
        flags.append("missed")
    elif not r.converged and r.status not in ("stalled", "precision"):
        flags.append("unsaid")  # nothing can reach it, but the words do not say so
    elif not r.converged and r.gap > slack:
        flags.append("loose")  # nothing can reach it, but more than this could be done


def cut_short(C: ex.AffineCut, r: ex.Result, x: np.ndarray, found: dict[str, Any]) -> None:
    """What is said of bounds that are approached only: by how much they are broken."""
    found["broken by"] = amount = broken_by(C, wide(x))
    rough = 1e-13 * float(np.abs(np.asarray(C.G)).sum(axis=1).max() * np.abs(x).max()) + 1e-13 * C.diameter
    if not abs(r.violation - amount) <= rough + 1e-9 * amount:
        found["flags"].append("false value")


def repeat(p: Problem, r: ex.Result, found: dict[str, Any]) -> None:
    """Equal calls give equal bits, one after the other or at once."""
    share = np.random.default_rng([p.seed, p.index, 1]).random()
    if share < TIMES:
        runs = [solve(p) for _ in range(2)]
    elif share < TIMES + THREADS and found["cpu"] < 1:
        runs = at_once(p, 10)
    else:
        return
    found["repeated"] = len(runs)
    different = [i for i, other in enumerate(runs) if isinstance(other, Exception) or not same(r, other)]
    if different:
        found["flags"].append("bits")
        found["different"] = [repr(runs[i])[:200] if isinstance(runs[i], Exception) else
                              f"{runs[i].calls} {runs[i].value!r} {runs[i].gap!r}" for i in different]  # fmt: skip
        found["first"] = f"{r.calls} {r.value!r} {r.gap!r}"


def same(a: ex.Result, b: ex.Result) -> bool:
    equal = np.array_equal(np.asarray(a.x), np.asarray(b.x), equal_nan=True)
    return bool(equal and (a.value, a.gap, a.status, a.n_iter, a.calls) == (b.value, b.gap, b.status, b.n_iter, b.calls))


def at_once(p: Problem, many: int) -> list[Any]:
    runs: list[Any] = [None] * many
    barrier = threading.Barrier(many)

    def one(i: int) -> None:
        barrier.wait()
        try:
            runs[i] = solve(p)
        except Exception as error:
            runs[i] = error

    threads = [threading.Thread(target=one, args=(i,)) for i in range(many)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return runs
