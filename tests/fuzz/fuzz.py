"""Random problems through `minimize`, each answer held against its definition in extended precision.

    python tests/fuzz/fuzz.py --minutes 5 --seed 1          # the table, and failures as lines of JSON in fuzz.jsonl
    python tests/fuzz/fuzz.py --seed 1 --only 17            # problem 17 of seed 1, by itself

Bars: no point outside of its set, no gap below the true one, no crash, no escaped warning, nothing printed, none above 20 s,
equal bits for equal calls; and 99.5 % of the problems of ordinary scale reach the tolerance, or float64 cannot.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from extremal_lab.threads import alone

PATIENCE, WALL = 90.0, 900.0  # seconds of the processor, and of the clock, after which a problem is given up
REACHED = 0.995
BROKEN = ("outside", "false gap", "false value", "crash", "warning", "printed", "slow", "hung", "died", "bits", "infinite")


def work() -> None:
    """A worker: an index on stdin, an outcome on stdout; what anyone else prints goes to a file that is looked at."""
    import warnings

    from fuzz_check import outcome, words_of

    talk = os.fdopen(os.dup(1), "w", buffering=1)
    noise = tempfile.TemporaryFile()  # noqa: SIM115
    os.dup2(noise.fileno(), 1)
    os.dup2(noise.fileno(), 2)
    for line in sys.stdin:
        seed, index = map(int, line.split())
        before = os.fstat(noise.fileno()).st_size
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            talk.write(json.dumps(words_of(seed, index), default=str) + "\n")
            found = outcome(seed, index)
        sys.stdout.flush()
        sys.stderr.flush()
        printed = [line for line in os.pread(noise.fileno(), 9999, before).decode().splitlines() if "compiling" not in line]
        if printed:
            found["flags"].append("printed")
            found["printed"] = printed
        talk.write(json.dumps(found, default=str) + "\n")


class Worker:
    """A process that is asked for one problem at a time, and replaced if it dies or takes too long."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=alone()
        )

    def ask(self, seed: int, index: int) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{seed} {index}\n".encode())
        self.process.stdin.flush()
        end, used, words = time.monotonic() + WALL, self.cpu(), {"set": "?", "loss": "?"}
        for last in (False, True):
            ready = []
            while not ready and time.monotonic() < end and self.cpu() < used + PATIENCE:
                ready, _, _ = select.select([self.process.stdout], [], [], 1.0)
            line = self.process.stdout.readline() if ready else b""
            if not line:
                self.end()
                flag = "died" if ready else "hung"
                return words | {"seed": seed, "index": index, "flags": [flag], "code": self.process.returncode}
            words = json.loads(line)
            if last:
                return words
        raise AssertionError

    def cpu(self) -> float:
        """Seconds of the processor so far, where the system says so: other programs do not make a problem slow."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        if not stat.exists():
            return time.monotonic()
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def run(seed: int, first: int, problems: int | None, minutes: float | None, jobs: int, out: Path) -> list[dict[str, Any]]:
    """Problems of a seed on some processes, until there are enough or the time is over."""
    found: list[dict[str, Any]] = []
    lock, end, left = threading.Lock(), time.monotonic() + 60 * (minutes or 1e9), iter(range(first, first + (problems or 10**9)))

    def loop():
        worker = Worker()
        while time.monotonic() < end:
            with lock:
                index = next(left, None)
            if index is None:
                break
            result = worker.ask(seed, index)
            if result["flags"] and result["flags"][0] in ("died", "hung"):
                worker = Worker()
            with lock:
                found.append(result)
                if result["flags"]:
                    with out.open("a") as file:
                        file.write(json.dumps(result) + "\n")
        worker.end()

    threads = [threading.Thread(target=loop) for _ in range(jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return found


def table(found: list[dict[str, Any]], key: str) -> str:
    """Counts by a property."""
    columns = ("missed", "unsaid", "loose", *BROKEN)
    used = [c for c in columns if any(c in r["flags"] for r in found)]
    rows = [[key, "problems", *used]]
    for name in sorted({str(r.get(key, "?")).split("(")[0] for r in found}):
        some = [r for r in found if str(r.get(key, "?")).split("(")[0] == name]
        rows.append([name, str(len(some)), *(str(sum(c in r["flags"] for r in some) or ".") for c in used)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)


def verdict(found: list[dict[str, Any]]) -> tuple[str, bool]:
    """The summary, and whether every bar holds."""
    counts = Counter(flag for r in found for flag in r["flags"])
    judged = [r for r in found if r.get("judged")]
    reached = 1 - sum("missed" in r["flags"] for r in judged) / max(1, len(judged))
    good = reached >= REACHED and not any(counts[flag] for flag in BROKEN)
    words = [f"{len(found)} problems; {len(judged)} of ordinary scale by Auto, {100 * reached:.2f} % of them at the tolerance"]
    words += [f"  {flag}: {count}" for flag, count in counts.most_common()]
    words += [
        f"  refused: {sum('refused' in r for r in found)}; impossible in float64: {sum(bool(r.get('impossible')) for r in found)}"
    ]
    times = sorted(r.get("cpu", 0.0) for r in found)
    if times:
        words.append(f"  seconds: median {times[len(times) // 2]:.3f}, longest {times[-1]:.1f}, all {sum(times):.0f}")
    return "\n".join(words), good


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--problems", type=int, default=None, help="how many; as many as fit in the time, if left out")
    parser.add_argument("--minutes", type=float, default=None, help="how long; 5, if neither is given")
    parser.add_argument("--first", type=int, default=0, help="index of the first problem")
    parser.add_argument("--only", type=int, default=None, help="one problem, in this process")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("fuzz.jsonl"))
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.worker:
        work()
        return 0
    if args.only is not None:
        from fuzz_check import outcome

        print(json.dumps(outcome(args.seed, args.only), indent=1, default=str))  # noqa: T201
        return 0
    minutes = 5.0 if args.minutes is None and args.problems is None else args.minutes
    args.out.unlink(missing_ok=True)
    found = run(args.seed, args.first, args.problems, minutes, args.jobs, args.out)
    summary, good = verdict(found)
    print("\n\n".join([table(found, "set"), table(found, "loss"), table(found, "chosen"), summary]))  # noqa: T201
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
