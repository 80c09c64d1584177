"""The two passes of a build: rows are read and put down in pieces, then shards are written. A journal tells of each piece."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from extremal.checks import InputError
from extremal.files.shards.batches import RowBatch
from extremal.files.shards.chunks import Chunk
from extremal.files.shards.folder import discarded, final
from extremal.files.shards.intake import Intake
from extremal.files.shards.journal import Journal, JsonRecord
from extremal.files.shards.manifest import FileMark, Shard, ShardProgress
from extremal.files.shards.shuffle import Shuffler
from extremal.files.shards.writing import ShardWriter, write_array


class FirstPass:
    """How far a source has been read: the chunk at work, and all that was known before it."""

    def __init__(self, intake: Intake, progress: ShardProgress | None = None):
        self.intake, self.progress = intake, progress
        self.at, self.size, self.kept, self.done = (0, 0), 0, 0, False  # kept: rows in pieces of an interrupted build
        self._before, self._told = intake.seen(), JsonRecord()

    def batches(self, chunks: Iterator[Chunk]) -> Iterator[RowBatch]:
        """The rows as shards keep them, without those that are kept; there must be some, with columns."""
        intake = self.intake
        for chunk in chunks:
            self.at, self._before, known = chunk.at, intake.seen(), max(0, self.kept - intake.n)
            batch = intake.batch(chunk) if len(chunk.targets) else None
            if batch is not None and known < batch.n:
                yield batch.part(known, batch.n) if known else batch
            self.size += chunk.size
            if self.progress is not None:
                self.progress("read", intake.n, self.size, None)
        if not intake.n or not intake.d:
            raise InputError(f"`ShardDir.build(source=...)` holds {'targets, but no features' if intake.n else 'no rows'}")

    def end(self) -> None:
        """All is read."""
        self._before, self.done = self.intake.seen(), True

    def place(self) -> JsonRecord:
        """What the journal has to know to go on with this chunk: all that it does not know yet."""
        seen, first = self._before, self._told.get("labels", 0)
        changed = {name: value for name, value in seen.items() if name not in self._told or self._told[name] != value}
        self._told = seen
        return {"at": self.at, "size": self.size, "seen": changed, "labels": self.intake.labels(first, seen["labels"])}

    def go_on(self, place: JsonRecord, n: int) -> None:
        """Go on from a place with n rows more in the pieces that are kept."""
        self._told = self._told | place["seen"]
        self.intake.go_on(self._told, place["labels"])
        file, chunk = place["at"]
        self.at, self.size = (file, chunk), place["size"]
        self.kept += 0 if self.done else n
        if "read" in place:
            self.end()


class Passes:
    """The way of rows into shards.

    A shuffled build has runs first, and shards when all is read. Rows that keep their order are written as they come.
    """

    def __init__(self, journal: Journal, reading: FirstPass, writer: ShardWriter, rows: Shuffler | None):
        self.journal, self.reading, self.writer, self.rows = journal, reading, writer, rows

    def resume(self, directory: Path) -> None:
        """Take back what the journal tells of, and say so; from then on, tell the journal."""
        try:
            known = self.journal.replay(self._take_back)
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{self.journal.path}: this is no journal of a build; remove {self.journal.path.parent}") from None
        if known:
            rows, shards = self.reading.kept, len(self.writer.shards)
            words = "%s: an interrupted build is resumed (rows read: %d, shards written: %d)"
            logging.getLogger("extremal").warning(words, directory, rows, shards)
        elif self.journal.pieces:
            discarded(directory)
        self.writer.finished = lambda shard: self._tell("shard", asdict(shard))
        if self.rows is not None:
            self.rows.finished = lambda run: self._tell("run", run)

    def _tell(self, kind: str, piece: JsonRecord | None) -> None:
        self.journal.add({kind: piece} | self.reading.place())

    def _take_back(self, item: JsonRecord) -> bool:
        """Take a piece that an interrupted build has finished, if it is whole."""
        whole, n = "read" in item, 0
        if "run" in item:
            whole, n = self.rows is not None and self.rows.take_back(item["run"]), item["run"]["n"]
        if "shard" in item and (self.rows is None or self.reading.done):
            files = {array: FileMark(**mark) for array, mark in item["shard"]["files"].items()}
            shard = Shard(**item["shard"] | {"files": files})
            whole, n = self.writer.take_back(shard), shard.n
        if whole:
            self.reading.go_on(item, n)
        return whole

    def read(self, chunks: Iterator[Chunk]) -> None:
        """The first pass, or the rest of it."""
        if self.reading.done:
            return
        sink = self.writer if self.rows is None else self.rows
        for batch in self.reading.batches(chunks):
            sink.add(batch)
        kept = self.rows.end() if self.rows is not None else bool(self.writer.finish())
        self.reading.end()
        if kept:
            self._tell("read", None)

    def write(self) -> list[Shard]:
        """The second pass, or the rest of it."""
        writer, order, total, size = self.writer, self.reading.intake.order, self.reading.intake.n, 0
        if self.rows is None:
            return writer.shards if order is None else [_renumbered(writer.folder, shard, order) for shard in writer.shards]
        many = -(-self.rows.bytes // writer.limit)
        writer.limit = -(-self.rows.bytes // many)
        done = sum(shard.n for shard in writer.shards)
        for batch in self.rows.batches(done):
            writer.add(batch if order is None else _relabelled(batch, order))
            done, size = done + batch.n, size + batch.bytes
            if self.reading.progress is not None:
                self.reading.progress("written", done, size, total)
        return writer.finish()


def _relabelled(batch: RowBatch, order: np.ndarray) -> RowBatch:
    """With the final numbers of labels that are text."""
    return RowBatch(batch.arrays | {"targets": order[batch.arrays["targets"].astype(np.intp)]})


def _renumbered(folder: Path, shard: Shard, order: np.ndarray) -> Shard:
    """The same of a shard that is written: in another file, so that this can be done again."""
    numbers = np.load(shard.path(folder, "targets"), allow_pickle=False).astype(np.intp)
    return replace(shard, files={**shard.files, "targets": write_array(final(shard, folder, "targets"), [order[numbers]])})
