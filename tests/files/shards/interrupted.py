"""Builds that are killed at every one of their writes, each in a process of its own, and built again by the same call.

    python interrupted.py FOLDER KIND EVERY

writes a line of JSON for each kill: which write, what the log said, whether all files are those of an uninterrupted build.
"""

import json
import logging
import os
import shutil
import sys
from pathlib import Path

import numpy as np
from shard_rows import contents, rows

from extremal.files.shards import journal, shuffle, sources, writing
from extremal.files.shards.build import build

OPTIONS = {  # about six runs and six shards
    "svm": {"max_memory": 8 * 1500, "shard_bytes": 1500, "seed": 3},
    "csv": {"max_memory": 8 * 1500, "shard_bytes": 1500, "target": "y", "weights": "w"},
    "in order": {"shuffle": False, "shard_bytes": 1500, "target": "y", "weights": "w"},
}


def files(folder, kind):
    """Three files of rows: sparse ones, or a table with labels that are text and turn up late."""
    A, y = rows(90)
    for i in range(3):
        part = range(30 * i, 30 * i + 30)
        if kind == "svm":
            lines = [f"{y[r]:g} " + " ".join(f"{j + 1}:{A[r, j]:g}" for j in np.flatnonzero(A[r])) for r in part]
            Path(folder, f"{i}.svm").write_text("\n".join(lines) + "\n")
        else:
            labels = [f"z{(90 - r) // 20}" for r in part]
            lines = [",".join(map(str, [*A[r].tolist(), 1 + r % 3, label])) for r, label in zip(part, labels, strict=True)]
            Path(folder, f"{i}.csv").write_text("\n".join(["a,b,c,d,e,f,g,w,y", *lines]) + "\n")
    return sorted(Path(folder).glob("?.svm" if kind == "svm" else "?.csv"))


class Killed:
    """Counts writes, and ends the process in the midst of one of them."""

    def __init__(self, at=-1):
        self.at, self.seen = at, 0
        for place in (writing, shuffle):
            place.write_bytes = self.around(writing_bytes, lambda file, left, *before: file.write(left[: len(left) // 2]))
        journal.Journal.add = self.around(adding, lambda self, item: self._file.write(b"00000000 {"))
        os.replace = self.around(replacing, lambda *paths: None)

    def around(self, do, half):
        def counted(*arguments):
            self.seen += 1
            if self.seen == self.at:
                half(*arguments)
                os._exit(9)
            return do(*arguments)

        return counted


writing_bytes, adding, replacing = writing.write_bytes, journal.Journal.add, os.replace


def in_child(do):
    """Do it in another process; return how that ended."""
    child = os.fork()
    if child == 0:
        do()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder, kind, every):
    sources.TEXT_AT_ONCE, sources.FIELDS_AT_ONCE, os.fsync = 300, 60, lambda handle: None
    source, said = files(folder, kind), []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("extremal").addHandler(handler)
    build(source, folder / "ready", **OPTIONS[kind])  # kernels are compiled now, and the files of their cache are not counted
    whole = Killed()
    build(source, folder / "whole", **OPTIONS[kind])
    for at in range(1, whole.seen + 1, every):
        said.clear()
        code = in_child(lambda at=at: (Killed(at), build(source, folder / "s", **OPTIONS[kind])))
        first = Killed()
        build(source, folder / "s", **OPTIONS[kind])
        same = contents(folder / "s") == contents(folder / "whole")
        told = {"at": at, "code": code, "said": said, "same": same, "writes": first.seen, "of": whole.seen}
        sys.stdout.write(json.dumps(told) + "\n")
        shutil.rmtree(folder / "s")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
