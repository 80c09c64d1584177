"""What reading LIBSVM text costs: CPU time of extremal.files.load, over that of scikit-learn's load_svmlight_file.

    python benchmarks/libsvm.py [FILE ...]      .xz files; those in the folder EXTREMAL_DATA, or generated ones, if none is given

Each file is read as it is and decompressed. Both are measured in one process on one thread, in turns, after a first load that
is not counted (numba is imported and compiles then); the median over the repeats is printed, with the spread.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import lzma
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from extremal.files.tables import load

REPEATS = 7


def main(paths):
    with tempfile.TemporaryDirectory() as folder:
        if not paths and "EXTREMAL_DATA" in os.environ:
            paths = sorted(Path(os.environ["EXTREMAL_DATA"]).rglob("*.xz"))
        print("CPU time of load, over that of load_svmlight_file (median, min to max), and both in ms:")
        for packed in map(Path, paths or generated(Path(folder))):
            plain = Path(folder, packed.stem)
            plain.write_bytes(lzma.decompress(packed.read_bytes()))
            for path in (plain, packed):
                report(path)


def report(path):
    assert same(load(path), theirs(path)), path
    ours, others = np.array([(seconds(load, path), seconds(theirs, path)) for _ in range(REPEATS)]).T
    ratios = ours / others
    print(f"  {np.median(ratios):6.3f}  ({ratios.min():.3f} to {ratios.max():.3f})", end="")
    print(f"  {1e3 * np.median(ours):8.2f} {1e3 * np.median(others):8.2f}  {path.name}")


def theirs(path):
    if path.suffix != ".xz":
        return load_svmlight_file(str(path), zero_based=False)
    with lzma.open(path) as file:
        return load_svmlight_file(file, zero_based=False)


def same(ours, others):
    return (ours[0] != others[0]).nnz == 0 and np.array_equal(ours[1], others[1])


def seconds(call, path):
    start = time.process_time()
    call(path)
    return time.process_time() - start


def generated(folder):
    """0/1 entries as in w8a, small integers as in madelon, and numbers of 6, 17 and 19 digits."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((1000, 200)).tolist()
    yield write(folder, "zero-one", ((np.sort(rng.choice(300, 12, replace=False)), [1] * 12) for _ in range(50_000)), "{}")
    yield write(folder, "integers", ((range(500), row) for row in rng.integers(400, 600, (2000, 500))), "{}")
    for style in ("{:.6g}", "{!r}", "{:.18e}"):
        yield write(folder, f"numbers{style}", ((range(200), row) for row in values), style)


def write(folder, name, rows, style):
    path = folder / f"{name}.xz"
    with lzma.open(path, "wt", preset=1) as file:
        for columns, values in rows:
            pairs = (f"{j + 1}:{style.format(v)}" for j, v in zip(columns, values, strict=True))
            file.write(f"{'+1' if columns[0] % 2 else '-1'} {' '.join(pairs)}\n")
    return path


if __name__ == "__main__":
    main(sys.argv[1:])
