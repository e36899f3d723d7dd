"""Files of edges, read and loaded: lines a second and the most memory held, beside DuckDB's and
polars' csv readers.

    integers   two columns of integers
    text       two columns of text of a dozen letters
    quoted     five columns: text in quotes, a weight, a time, and one of text that is not used

Each reader runs in a process of its own, in turns, and hands over its columns batch by batch: the
ones of an edge, of the same types. `load` does what `lpma load` does, but does not save: it reads,
finds the vertices' names and inserts the edges. The files lie in the page cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from ..report import Report, Row, Setting
from ..stopwatch import Figure

LINES = 4_000_000
ROUNDS = 3
NAMES = 500_000

# What each reader imports beforehand, and does.
_READERS = {
    "lpma": (
        "import ingest, pyarrow.csv",
        """
for columns in ingest.read_edges(path):
    lines += len(columns)
""",
    ),
    "polars": (
        "import polars",
        """
for frame in polars.scan_csv(path).select(columns).collect_batches():
    lines += len(frame)
""",
    ),
    "duckdb": (
        "import duckdb, pyarrow",
        """
query = f"select {', '.join(columns)} from read_csv('{path}', header=true)"
for batch in duckdb.sql(query).fetch_record_batch(100_000):
    lines += len(batch)
""",
    ),
    "load": (
        "import lpma, pyarrow.csv",
        """
from ingest.cli._console import Screen
from ingest.cli._edges import BATCH_SIZE, fill, find_edges
from ingest.cli._file_options import FileOptions
with Screen(quiet=True) as screen:
    edges = find_edges(path, None, FileOptions(), screen, False, False)
    graph = lpma.Graph(device="cpu", names=edges.named)
    lines, _ = fill(graph, edges, BATCH_SIZE, False, screen)
""",
    ),
}

_PROGRAM = """
import json, sys, time
path, columns, lines = sys.argv[1], sys.argv[2].split(), 0
{imports}
started = time.perf_counter()
{reader}
seconds = time.perf_counter() - started
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
print(json.dumps([lines, seconds, peak]))
"""


def load(setting: Setting) -> Report:
    """Lines a second and the most memory, of every reader on every file."""
    report = Report("load", "million lines a second; the most memory held, MiB")
    lines = 20_000 if setting.quick else LINES
    with tempfile.TemporaryDirectory() as folder:
        for name, columns in _write_files(Path(folder), lines).items():
            report.add(_row(Path(folder) / f"{name}.csv", name, columns, lines, setting))
    report.notes.append("ratio: the faster of the other readers' time to lpma's.")
    return report


def _write_files(folder: Path, lines: int) -> dict[str, str]:
    """Make the files; what each one's columns of an edge are called."""
    import pyarrow
    from pyarrow import csv

    rng = np.random.default_rng(0)

    def write(name: str, table: dict[str, object], quoting: str) -> None:
        options = csv.WriteOptions(quoting_style=quoting)
        csv.write_csv(pyarrow.table(table), folder / f"{name}.csv", options)

    def ends(names: list[str]) -> list[object]:
        text = pyarrow.array(names)
        codes = (pyarrow.array(rng.integers(0, len(names), lines)) for _ in range(2))
        return [pyarrow.DictionaryArray.from_arrays(c, text).dictionary_decode() for c in codes]

    numbers = [rng.integers(0, 4 * NAMES, lines) for _ in range(2)]
    write("integers", {"src": numbers[0], "dst": numbers[1]}, "none")
    users = ends([f"user-{i:07x}" for i in range(NAMES)])
    write("text", {"src": users[0], "dst": users[1]}, "none")
    places = ends([f'City {i}, "x"' if i % 10 == 0 else f"Name {i}" for i in range(NAMES)])
    quoted = {
        "src": places[0], "dst": places[1], "weight": np.round(rng.random(lines) * 100, 2),
        "time": rng.integers(1_600_000_000_000, 1_700_000_000_000, lines),
        "note": pyarrow.array(["hello, world"] * lines),
    }  # fmt: skip
    write("quoted", quoted, "needed")
    return {"integers": "src dst", "text": "src dst", "quoted": "src dst weight time"}


def _row(path: Path, name: str, columns: str, lines: int, setting: Setting) -> Row:
    rates: dict[str, list[float]] = {}
    peaks: dict[str, float] = {}
    for _ in range(1 if setting.quick else ROUNDS):
        for reader, (imports, program) in _READERS.items():
            if not setting.wants(reader):
                continue
            found, seconds, peak = _run(
                _PROGRAM.format(imports=imports, reader=program), path, columns
            )
            assert found == lines, f"{reader} read {found} lines of {lines}"
            rates.setdefault(reader, []).append(lines / seconds / 1e6)
            peaks[reader] = max(peak, peaks.get(reader, 0.0))
    medians = {reader: Figure(float(np.median(found)), found) for reader, found in rates.items()}
    others = [float(medians[reader]) for reader in ("polars", "duckdb") if reader in medians]
    row: Row = {"file": name, "MB": path.stat().st_size / 1e6}
    row |= {reader: medians.get(reader) for reader in _READERS}
    row["ratio"] = float(medians["lpma"]) / max(others) if others and "lpma" in medians else None
    return row | {f"{reader} MiB": peaks.get(reader) for reader in _READERS}


def _run(program: str, path: Path, columns: str) -> tuple[int, float, float]:
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), columns],
        capture_output=True, text=True, check=True, env=dict(os.environ),
    )  # fmt: skip
    lines, seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return lines, seconds, peak
