"""Files of edges: csv and other text, JSON lines, Matrix Market, Parquet, `.npz`, and other formats
of graphs.

    .csv .tsv     fields between commas, tabs, semicolons or bars; quotes allowed
    other text    the same, or fields between blanks, as SNAP has them
    .jsonl        an object of JSON a line (also .ndjson)
    .mtx          Matrix Market, coordinate; ids from 1; a symmetric entry stands for both edges
    .parquet      columns by name; also .arrow, .feather
    .npz          arrays by name, or the CSR that an export wrote
    others        METIS, DIMACS, NetworkX's edge lists; GraphML, GEXF, GML and Pajek by NetworkX

What a file is, its content says before its name does. All but Parquet, Arrow and `.npz` may be
packed with gzip, zstd, bzip2 or zip, whatever they are called. Lines that begin with "#" or "%" are
comments; in a csv or tsv, those above the first row alone. Memory is bounded: text is read in
blocks of 4 MiB, Parquet in row groups, Arrow and `.npz` as the arrays they hold; NetworkX holds
what it reads whole.
"""

from __future__ import annotations

import os
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from lpma.arguments.arrow import as_arrow, as_numpy, text_array
from lpma.batch.columns import Columns

from ...errors import SourceError
from ...fields import Fields
from .archives import open_npz
from .by_networkx import open_by_networkx
from .comments import EXCEL, without_comments
from .dimacs import open_dimacs
from .edge_dicts import open_edge_dicts
from .formats import BY_NETWORKX, CALLED, LISTS, format_of, format_of_name
from .guess import SAMPLE_ROWS, guess_text
from .json_lines import open_json_lines
from .left_out import LeftOut
from .matrix import open_matrix
from .metis import open_metis
from .opening import Block, read_blocks
from .pieces import Array, Piece, Vertices
from .reading import Arguments, Asked, Reading
from .sides import Sides, sides_of
from .tables import open_arrow, open_parquet
from .text import read_text
from .unpacking import refuse_no_file

SAMPLE_BYTES = 1 << 18  # of a block, that guesses rest on
_OPENERS: dict[str, Callable[[Path, Asked, bool], tuple[Any, ...]]] = {
    "npz": open_npz, "parquet": open_parquet, "arrow": open_arrow, "mtx": open_matrix,
    "metis": open_metis, "dimacs": open_dimacs, "edgelist": open_edge_dicts,
}  # fmt: skip
NOT_NAMES = ("NULL", "null", "NA", "N/A", "n/a", "nan", "NaN", "None", "NaT")


class EdgeFile:
    """A file of edges, opened: `read_edges` makes it. Iterating reads it, as `lpma.Columns`.

    reading    how it is read: str(reading) says so in a line
    left_out   what has been left out so far: `count`, `reasons`, and the `first` three lines
    sides      of a file with two kinds of vertices, how many the left side has; else None
    doubtful   names that have been read and may stand for missing values, as "NA" → how many

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
        sides: Sides | None = None,
    ) -> None:
        self.path = path
        self.reading = reading
        self.left_out = LeftOut()
        self.doubtful: Counter[str] = Counter()
        self.sides = sides
        self._pieces = pieces
        self._vertices = vertices

    @property
    def left(self) -> int | None:
        """How many vertices the left side has, if there are two kinds."""
        return None if self.sides is None else self.sides.left

    def vertices(self) -> Array:
        """The vertices, ids or names, that the file has whether or not an edge ends at them: what a
        square matrix has rows for, and an exported `.npz`. Empty if it says nothing of vertices.
        REQUIRES: all of it was read."""
        return np.empty(0, np.uint32) if self._vertices is None else self._vertices()

    def pieces(self) -> Iterator[Piece]:
        """The rows, good and bad, in order. Raises SourceError."""
        with as_source_errors(self.path):
            for piece in self._pieces:
                for _, rejected in piece.bad:
                    self.left_out.add(rejected)
                if self.sides is not None and len(piece.columns):
                    piece.columns = self.sides.apart(piece.columns)
                if self.reading.named:
                    self.doubtful += _doubtful(piece.columns)
                yield piece

    def __iter__(self) -> Iterator[Columns]:
        return (piece.all for piece in self.pieces() if len(piece.columns))


def read_edges(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    json: Fields | None = None,
    mirror: bool = True,
    **options: Unpack[Arguments],
) -> EdgeFile:
    """Open a file of edges; what is not said is guessed from its first rows, and `reading` tells.

    source, target, weight, time: a column each, by its name or its number from 1; "none" for a
    weight or time that is not wanted. Where one is named, weights and times are not guessed.
    columns: what all columns of text are, in order ("src dst - time"), or a map from field to name.
    header: whether the first line names the columns. separator: of the fields, " " for blanks.
    names: whether vertices go by names, which are text or integers of 64 bits; otherwise they go by
    numbers below 2^32 - 1. kind: the column that says what a row does, in words ("append" or
    "insert", "delete", "set", "add_vertex", "remove_vertex") or numbers of `lpma.Kind`; it is never
    guessed. kinds: its words → these. decimal, thousands: the marks within weights. time_unit: of
    times that are numbers, which become milliseconds; "auto": by their size; None: they stay as
    they are. Times that are dates become milliseconds since 1970. bipartite: whether sources and
    targets are two kinds of vertices, of which equal numbers or names are two; None: as the file
    says (KONECT's "% bip", a matrix that is not square). format: "csv", "tsv", "text",
    "jsonl", "mtx", "metis", "dimacs", "edgelist", "graphml", "gexf", "gml", "pajek", "parquet",
    "arrow" or "npz"; None: by content, then by name. json: the fields of JSON lines, exactly.
    mirror: whether an edge of a file that says its graph is undirected (a symmetric Matrix Market,
    an export) gives both edges; say False for a graph that is undirected itself. Raises
    SourceError.

    >>> _ = Path("own.csv").write_text("from,to,amount\\nalice,bob,3\\nbob,carol,1.5\\n")
    >>> edges = ingest.read_edges("own.csv")
    >>> print(edges.reading)
    reading own.csv: columns from → source, to → target, amount → weight; vertices by name
    >>> [len(columns) for columns in edges], edges.left_out.count
    ([2], 0)
    """
    path = Path(path)
    return open_edges(path, Asked.of(options), format_in(path, format), json, mirror)


def format_in(path: Path, said: str | None = None) -> str:
    """`format_of` the file that must be there. Raises SourceError."""
    refuse_no_file(path)
    with as_source_errors(path):
        return format_of(path, said)


def open_edges(
    path: Path, asked: Asked, format: str, json: Fields | None = None, mirror: bool = True
) -> EdgeFile:
    """`read_edges` of gathered options. REQUIRES: `format_in` gave the format."""
    file = _opened(path, asked, format, json, mirror)
    if not file.reading.bipartite:
        return file
    if file.reading.left is not None and not file.reading.named:
        file.sides = Sides(file.reading.left, shifted=file.reading.stored)
        return file
    sides = sides_of(file.pieces(), file.reading)
    file = _opened(path, asked, format, json, mirror)
    if sides.before and file.reading.stored:  # its edges lead both ways, and names stay as they are
        file.reading = replace(file.reading, bipartite=False)
    else:
        file.sides = sides
    return file


def _opened(path: Path, asked: Asked, format: str, json: Fields | None, mirror: bool) -> EdgeFile:
    with as_source_errors(path):
        if format not in LISTS and (asked.columns is not None or asked.separator is not None):
            raise SourceError(
                f"{path}: columns and separator apply to text and csv files, but this is {format}"
            )
        if format != "jsonl" and asked.fields.has_defaults:
            raise SourceError(f"{path}: a default weight or kind is for JSON lines: not {format}")
        opened: tuple[Any, ...]
        if format in LISTS:
            opened = _open_text(path, format, asked)
        elif format == "jsonl":
            opened = open_json_lines(path, asked, json)
        elif format in BY_NETWORKX:
            opened = open_by_networkx(path, format, asked, mirror)
        else:
            opened = _OPENERS[format](path, asked, mirror)
        reading, *more = opened
        if format != format_of_name(path):
            reading = replace(reading, called=CALLED[format])
        return EdgeFile(path, reading, *more)


def _open_text(path: Path, format: str, asked: Asked) -> tuple[Reading, Iterator[Piece]]:
    sample, comments = _sample(path, format, asked)
    reading = guess_text(path, format, sample, asked, comments)
    return reading, read_text(_body(path, reading), reading)


def _doubtful(columns: Columns) -> Counter[str]:
    """How often these names end a row that may stand for none."""
    import pyarrow.compute as pc

    found: Counter[str] = Counter()
    words = text_array([name.encode() for name in NOT_NAMES])
    ends: list[Any] = [columns.src, columns.dst]
    for end in ends:
        if isinstance(end, np.ndarray):
            names = end.tolist() if end.dtype == object else []
            found.update(name for name in names if name in NOT_NAMES)
            continue
        texts = getattr(end, "dictionary", end)
        short = np.flatnonzero(as_numpy(pc.binary_length(texts)) <= max(map(len, NOT_NAMES)))
        there = short[as_numpy(pc.is_in(texts.take(as_arrow(short)), words))]
        names = texts.take(as_arrow(there)).to_pylist()
        if texts is end:
            found.update(names)
            continue
        for code, name in zip(there.tolist(), names, strict=True):
            found[name] += int(np.count_nonzero(as_numpy(end.indices) == code))
    return found


def _sample(path: Path, format: str, asked: Asked) -> tuple[list[str], list[str]]:
    """The first rows that are neither blank nor comments, and the comments above them."""
    said = asked.separator or {"csv": ",", "tsv": "\t"}.get(format, ",")
    quoting = None if said == " " else said
    rows: list[str] = []
    comments: list[str] = []
    blocks = read_blocks(path, quoting)
    first = next(blocks, Block(b"", 1))
    for line in first.data[:SAMPLE_BYTES].split(b"\n"):
        is_comment = line.lstrip().startswith((b"#", b"%")) or EXCEL.fullmatch(line)
        if line.strip() and not is_comment:
            break
        comments += [line.decode("utf-8", "replace").strip()] if line.strip() else []
    for block in without_comments(chain([first], blocks), quoting, format):
        lines = block.before(SAMPLE_BYTES).rows()
        if len(block.data) > SAMPLE_BYTES and len(lines) > 1:
            lines.pop()  # it was cut
        lines = lines[: SAMPLE_ROWS - len(rows)]
        rows += [line.decode("utf-8", "replace").rstrip("\r") for _, line in lines]
        if len(rows) == SAMPLE_ROWS:
            break
    return rows, comments


def _body(path: Path, reading: Reading) -> Iterator[Block]:
    """The file's blocks, comments and header made empty."""
    header = reading.header is not None and not reading.commented
    blocks = read_blocks(path, reading.separator)
    for block in without_comments(blocks, reading.separator, reading.format):
        if header and (rows := block.before(1 << 16).rows()):
            row, header = rows[0][1], False
            start = block.data.index(row)
            data = block.data[:start] + b"\n" * row.count(b"\n") + block.data[start + len(row) :]
            block = block.holding(data, reading.separator)
        yield block


@contextmanager
def as_source_errors(path: Path) -> Iterator[None]:
    """Within, what the system and the readers raise is a SourceError that names the file."""
    try:
        yield
    except Exception as error:
        system = isinstance(error, OSError | EOFError | zipfile.BadZipFile)
        if not system and not type(error).__module__.startswith("pyarrow"):
            raise
        text = str(error).strip() or type(error).__name__
        raise SourceError(f"{path}: cannot be read: {text}") from error
