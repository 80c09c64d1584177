"""The two passes of a build: one reads rows and stores them in pieces, one writes shards. A journal records each piece."""

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
    """The progress of reading a source: the current chunk, and all facts known before it."""

    def __init__(self, intake: Intake, progress: ShardProgress | None = None):
        self.intake, self.progress = intake, progress
        self.at, self.size, self.kept, self.done = (0, 0), 0, 0, False  # kept: number of rows in pieces of an interrupted build
        self._before, self._told = intake.seen(), JsonRecord()

    def batches(self, chunks: Iterator[Chunk]) -> Iterator[RowBatch]:
        """The rows in the form of shards, without those that are kept; no rows, or rows without columns, are an error."""
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
        """Note that the whole source is read."""
        self._before, self.done = self.intake.seen(), True

    def place(self) -> JsonRecord:
        """The facts that the journal still lacks to resume at this chunk."""
        seen, first = self._before, self._told.get("labels", 0)
        changed = {name: value for name, value in seen.items() if name not in self._told or self._told[name] != value}
        self._told = seen
        return {"at": self.at, "size": self.size, "seen": changed, "labels": self.intake.labels(first, seen["labels"])}

    def go_on(self, place: JsonRecord, n: int) -> None:
        """Go on from a place, with n more rows in the kept pieces."""
        self._told = self._told | place["seen"]
        self.intake.go_on(self._told, place["labels"])
        file, chunk = place["at"]
        self.at, self.size = (file, chunk), place["size"]
        self.kept += 0 if self.done else n
        if "read" in place:
            self.end()


class Passes:
    """Both passes, with their journal.

    A shuffled build first writes runs, and shards after all rows are read. Rows that keep their order become shards at once.
    """

    def __init__(self, journal: Journal, reading: FirstPass, writer: ShardWriter, rows: Shuffler | None):
        self.journal, self.reading, self.writer, self.rows = journal, reading, writer, rows

    def resume(self, directory: Path) -> None:
        """Reuse the pieces in the journal, and log it; from then on, record each piece in the journal."""
        try:
            known = self.journal.replay(self._take_back)
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{self.journal.path}: not a journal of a build; remove {self.journal.path.parent}") from None
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
        """Reuse a finished piece of an interrupted build, if it is whole."""
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
    """The batch with the final numbers of text labels."""
    return RowBatch(batch.arrays | {"targets": order[batch.arrays["targets"].astype(np.intp)]})


def _renumbered(folder: Path, shard: Shard, order: np.ndarray) -> Shard:
    """Renumber the labels of a written shard: in another file, so that it can be done again."""
    numbers = np.load(shard.path(folder, "targets"), allow_pickle=False).astype(np.intp)
    return replace(shard, files={**shard.files, "targets": write_array(final(shard, folder, "targets"), [order[numbers]])})
