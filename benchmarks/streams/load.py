"""Files of edges, read and loaded: lines a second and the most memory held, beside DuckDB's and
polars' csv readers.

    integers   two columns of integers
    text       two columns of text of a dozen letters
    quoted     five columns: text in quotes, a weight, a time, and one of text that is not used

Each reader runs in a process of its own, in turns, and hands over its columns batch by batch: the
ones of an edge, of the same types. `load` does what `lpma load` does: it reads, finds the vertices'
names and inserts the edges. The files lie in the page cache.
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

LINES = 5_000_000
ROUNDS = 5
NAMES = 500_000

_READERS = {
    "lpma": """
import ingest
for columns in ingest.read_edges(path):
    lines += len(columns)
""",
    "polars": """
import polars
for frame in polars.scan_csv(path).select(columns).collect_batches():
    lines += len(frame)
""",
    "duckdb": """
import duckdb
query = f"select {', '.join(columns)} from read_csv('{path}', header=true)"
for batch in duckdb.sql(query).fetch_record_batch(100_000):
    lines += len(batch)
""",
    "load": """
import ingest, lpma
edges = ingest.read_edges(path)
graph = lpma.Graph(device="cpu", names=edges.reading.named)
for columns in edges:
    graph.insert(columns.src, columns.dst, 1.0 if columns.weight is None else columns.weight, columns.time)
    lines += len(columns)
""",
}

_PROGRAM = """
import json, resource, sys, time
path, columns, lines = sys.argv[1], sys.argv[2].split(), 0
started = time.perf_counter()
{reader}
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
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
    plain, needed = (csv.WriteOptions(quoting_style=style) for style in ("none", "needed"))  # type: ignore[arg-type]

    def ends(names: list[str]) -> list[object]:
        text = pyarrow.array(names)
        codes = (pyarrow.array(rng.integers(0, len(names), lines)) for _ in range(2))
        return [pyarrow.DictionaryArray.from_arrays(c, text).dictionary_decode() for c in codes]

    numbers = [rng.integers(0, 4 * NAMES, lines) for _ in range(2)]
    csv.write_csv(pyarrow.table(dict(zip(("src", "dst"), numbers, strict=True))), folder / "integers.csv", plain)
    users = ends([f"user-{i:07x}" for i in range(NAMES)])
    csv.write_csv(pyarrow.table(dict(zip(("src", "dst"), users, strict=True))), folder / "text.csv", plain)
    places = ends([f'City {i}, "x"' if i % 10 == 0 else f"Name {i}" for i in range(NAMES)])
    quoted = {
        "src": places[0], "dst": places[1], "weight": np.round(rng.random(lines) * 100, 2),
        "time": rng.integers(1_600_000_000_000, 1_700_000_000_000, lines),
        "note": pyarrow.array(["hello, world"] * lines),
    }  # fmt: skip
    csv.write_csv(pyarrow.table(quoted), folder / "quoted.csv", needed)
    return {"integers": "src dst", "text": "src dst", "quoted": "src dst weight time"}


def _row(path: Path, name: str, columns: str, lines: int, setting: Setting) -> Row:
    rates: dict[str, list[float]] = {}
    peaks: dict[str, float] = {}
    for _ in range(1 if setting.quick else ROUNDS):
        for reader, program in _READERS.items():
            if not setting.wants(reader):
                continue
            found, seconds, peak = _run(_PROGRAM.format(reader=program), path, columns)
            assert found == lines, f"{reader} read {found} lines of {lines}"
            rates.setdefault(reader, []).append(lines / seconds / 1e6)
            peaks[reader] = max(peak, peaks.get(reader, 0.0))
    medians = {reader: Figure.of(sorted(found)) for reader, found in rates.items()}
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
    lines, seconds, peak = json.loads(done.stdout)
    return lines, seconds, peak
