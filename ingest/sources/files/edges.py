"""Files of edges: csv and other text, JSON lines, Matrix Market, Parquet and `.npz`.

    .csv .tsv     fields between commas, tabs, semicolons or bars; quotes allowed
    other text    the same, or fields between blanks, as SNAP has them
    .jsonl        an object of JSON a line (also .ndjson)
    .mtx          Matrix Market, coordinate; ids from 1; a symmetric entry stands for both edges
    .parquet      columns by name
    .npz          arrays by name, or the CSR that an export wrote

Text, JSON lines and Matrix Market may be packed with gzip or zstd, whatever they are called. Lines
that begin with "#" or "%" are comments; in a csv or tsv, those above the first row alone. Memory is
bounded: text is read in blocks of 4 MiB, Parquet in row groups, an `.npz` as the arrays it holds.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from lpma.batch.columns import Columns

from ...errors import SourceError
from ...fields import Fields
from .archives import open_npz
from .comments import without_comments
from .guess import SAMPLE_ROWS, guess_text
from .json_lines import open_json_lines
from .kinds import format_of
from .left_out import LeftOut
from .matrix import open_matrix
from .opening import Block, lines_of, read_blocks
from .pieces import Array, Piece, Vertices
from .reading import Asked, Column, Reading
from .tables import open_parquet
from .text import read_text

SAMPLE_BYTES = 1 << 18  # of a block, that guesses rest on


class EdgeFile:
    """A file of edges, opened: `read_edges` makes it. Iterating reads it, as `lpma.Columns`.

    reading    how it is read: str(reading) says so in a line
    left_out   what has been left out so far: `count`, `reasons`, and the `first` three lines

    If vertices go by names, `src` and `dst` of the columns are names: arrays of integers, Arrow's
    arrays of text, or objects.

    >>> _ = Path("own.csv").write_text("from,to\\nalice,bob\\nbob\\n")
    >>> edges = ingest.read_edges("own.csv")
    >>> for columns in edges:
    ...     print(columns.src.tolist(), columns.dst.tolist())
    ['alice'] ['bob']
    >>> print(edges.left_out)
    left out 1 bad line (1 field where 2 are expected: 1), the first: line 3, 'bob'
    """

    def __init__(
        self,
        path: Path,
        reading: Reading,
        pieces: Iterator[Piece],
        vertices: Vertices | None = None,
    ) -> None:
        self.path = path
        self.reading = reading
        self.left_out = LeftOut()
        self._pieces = pieces
        self._vertices = vertices

    def vertices(self) -> Array:
        """The vertices, ids or names, that the file has whether or not an edge ends at them: what a
        square matrix has rows for, and an exported `.npz`. Empty if it says nothing of vertices.
        REQUIRES: all of it was read."""
        return np.empty(0, np.uint32) if self._vertices is None else self._vertices()

    def pieces(self) -> Iterator[Piece]:
        """The rows, good and bad, in order. Raises SourceError."""
        with _as_source_errors(self.path):
            for piece in self._pieces:
                for _, rejected in piece.bad:
                    self.left_out.add(rejected)
                yield piece

    def __iter__(self) -> Iterator[Columns]:
        return (piece.all for piece in self.pieces() if len(piece.columns))


def read_edges(
    path: str | os.PathLike[str],
    *,
    source: Column | None = None,
    target: Column | None = None,
    weight: Column | None = None,
    time: Column | None = None,
    header: bool | None = None,
    separator: str | None = None,
    names: bool | None = None,
    format: str | None = None,
    json: Fields | None = None,
    mirror: bool = True,
) -> EdgeFile:
    """Open a file of edges; what is not said is guessed from its first rows, and `reading` tells.

    source, target, weight, time: a column each, by its name or its number from 1; "none" for a
    weight or time that is not wanted. header: whether the first line names the columns. separator:
    of the fields, " " for blanks. names: whether vertices go by names, which are text or integers
    of 64 bits; otherwise they go by numbers below 2^32 - 1. format: "csv", "tsv", "text", "jsonl",
    "mtx", "parquet" or "npz"; None: by the name. json: the fields of JSON lines, exactly. mirror:
    whether an edge of a file that says its graph is undirected (a symmetric Matrix Market, an
    export) gives both edges; say False for a graph that is undirected itself. Times that are dates
    become milliseconds since 1970. Raises SourceError.

    >>> _ = Path("own.csv").write_text("from,to,amount\\nalice,bob,3\\nbob,carol,1.5\\n")
    >>> edges = ingest.read_edges("own.csv")
    >>> print(edges.reading)
    reading own.csv: columns from → source, to → target, amount → weight; vertices by name
    >>> [len(columns) for columns in edges], edges.left_out.count
    ([2], 0)
    """
    asked = Asked(source, target, weight, time, header, separator, names)
    return open_edges(Path(path), asked, format, json, mirror)


def open_edges(
    path: Path,
    asked: Asked,
    format: str | None = None,
    json: Fields | None = None,
    mirror: bool = True,
) -> EdgeFile:
    """`read_edges` of gathered options."""
    if path.is_dir():
        raise SourceError(f"{path}: a directory, not a file of edges")
    with _as_source_errors(path):
        format = format or format_of(path)
        text = format in ("text", "csv", "tsv")
        if not text and (asked.columns is not None or asked.separator is not None):
            raise SourceError(
                f"{path}: columns and separator apply to text and csv files, but this is {format}"
            )
        if format == "npz":
            return EdgeFile(path, *open_npz(path, asked, mirror))
        if format == "parquet":
            return EdgeFile(path, *open_parquet(path, asked, mirror))
        if format == "mtx":
            return EdgeFile(path, *open_matrix(path, asked, mirror))
        if format == "jsonl":
            return EdgeFile(path, *open_json_lines(path, asked, json))
        return EdgeFile(path, *_open_text(path, format, asked))


def _open_text(path: Path, format: str, asked: Asked) -> tuple[Reading, Iterator[Piece]]:
    sample = _sample(path, format, asked)
    reading = guess_text(path, format, sample, asked)
    return reading, read_text(_body(path, reading), reading)


def _sample(path: Path, format: str, asked: Asked) -> list[str]:
    """The first rows that are neither blank nor comments."""
    said = asked.separator or {"csv": ",", "tsv": "\t"}.get(format, ",")
    quoting = None if said == " " else said
    rows: list[str] = []
    for block in without_comments(read_blocks(path, quoting), quoting, format):
        lines = lines_of(block.data[:SAMPLE_BYTES], quoting)
        if len(block.data) > SAMPLE_BYTES and len(lines) > 1:
            lines.pop()  # it was cut
        rows += [line.decode("utf-8", "replace").rstrip("\r") for _, line in lines]
        if len(rows) >= SAMPLE_ROWS:
            break
    return rows[:SAMPLE_ROWS]


def _body(path: Path, reading: Reading) -> Iterator[Block]:
    """The file's blocks, comments and header made empty."""
    header = reading.header is not None
    blocks = read_blocks(path, reading.separator)
    for block in without_comments(blocks, reading.separator, reading.format):
        data = block.data
        if header and (rows := lines_of(data[: 1 << 16], reading.separator)):
            row = rows[0][1]
            start = data.index(row)
            data = data[:start] + b"\n" * row.count(b"\n") + data[start + len(row) :]
            header = False
        yield block.holding(data)


@contextmanager
def _as_source_errors(path: Path) -> Iterator[None]:
    """Within, what the system and the readers raise is a SourceError that names the file."""
    try:
        yield
    except Exception as error:
        system = isinstance(error, OSError | EOFError | zipfile.BadZipFile)
        if not system and not type(error).__module__.startswith("pyarrow"):
            raise
        text = str(error).strip() or type(error).__name__
        raise SourceError(f"{path}: cannot be read: {text}") from error
