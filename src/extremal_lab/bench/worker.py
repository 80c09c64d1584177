"""One part of the suite as a process: ``python -m extremal_lab.bench.worker PART LEVEL`` writes a line of JSON a result."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib import import_module

from extremal_lab.bench.timing import Found, Measurement, Skipped

USUAL = ("methods", "rows", "iterations", "sizes", "variance", "memory", "startup")
NETWORK = ("copt", "l1_peers")  # other packages
LONG = (  # some minutes each, about parts of the library that the usual ones do not measure
    "practical", "oracles", "polytopes", "spectral", "completion", "completion_error", "completion_large", "simplex",
    "simplex_tall", "ensembles", "estimators", "libsvm", "shards", "workers", "peers",
)  # fmt: skip
PARTS = (*USUAL, *LONG, *NETWORK)


def found(part: str, level: str) -> Found:
    """The results of a part, as they come."""
    return import_module(f"extremal_lab.bench.{part}").measure(level)


def summary(part: str) -> str:
    """The description of a part.

    Examples
    --------
    >>> summary("variance")
    'How far batch gradients are from the gradient: consecutive rows of shuffled data, against rows drawn at random.'
    """
    return (import_module(f"extremal_lab.bench.{part}").__doc__ or "").splitlines()[0]


def line(item: Measurement | Skipped) -> str:
    """A result as a line.

    Examples
    --------
    >>> read(line(Skipped("copt", "all", "no network")))
    Skipped(part='copt', name='all', reason='no network')
    """
    return json.dumps({type(item).__name__: asdict(item)})


def read(text: str) -> Measurement | Skipped:
    """The result in a line."""
    ((kind, fields),) = json.loads(text).items()
    return {"Measurement": Measurement, "Skipped": Skipped}[kind](**fields)


def main(part: str, level: str) -> None:
    """Write the results of a part to standard output."""
    for item in found(part, level):
        sys.stdout.write(line(item) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
