"""The commands of `lpma` on files of the size that people have: seconds of the clock and of the
processors, and the most memory, each in a process of its own.

    big      RMAT of scale 22, 64 M draws: a Parquet file, and what `lpma load` makes of it
    named    16 M draws of the same, vertices by names of a dozen letters

The inputs are kept in the system's temporary directory for the next run, and lie in the page cache.
Kernels are compiled beforehand, by the same commands on a small graph.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ingest.datasets.generators import rmat

from ..report import Report, Row, Setting
from ..stopwatch import Figure, WrongAnswer

ROUNDS = 3
PIECE = 1 << 20  # rows of a row group

COMMANDS = {
    "load": "load {folder}/big.parquet {out}/g.lpma",
    "info": "info {folder}/big.lpma",
    "components": "run components {folder}/big.lpma",
    "core": "run core {folder}/big.lpma",
    "pagerank": "run pagerank {folder}/big.lpma",
    "named-core": "run core {folder}/named.lpma",
    "csv": "export {folder}/big.lpma {out}/g.csv",
    "parquet": "export {folder}/big.lpma {out}/g.parquet",
    "npz": "export {folder}/big.lpma {out}/g.npz",
}


class Scale(NamedTuple):
    """How large the inputs are."""

    scale: int
    draws: int
    named_draws: int


SMALL, LARGE = Scale(10, 20_000, 10_000), Scale(22, 64_000_000, 16_000_000)


def commands(setting: Setting) -> Report:
    """Seconds and memory of each command."""
    report = Report("commands", "seconds, of the clock and of the processors; the most memory, MiB")
    asked = {name: command for name, command in COMMANDS.items() if setting.wants(name)}
    folder = _inputs(SMALL)
    if not setting.quick:
        for command in asked.values():
            _run(command, folder)  # compiles
        folder = _inputs(LARGE)
    for name, command in asked.items():
        runs = [_run(command, folder) for _ in range(1 if setting.quick else ROUNDS)]
        report.add(_row(name, command, runs))
    return report


class Run(NamedTuple):
    """What a process took."""

    seconds: float
    cpu_seconds: float
    peak_mib: float


def _row(name: str, command: str, runs: list[Run]) -> Row:
    def median(of: Callable[[Run], float]) -> Figure:
        values = [of(run) for run in runs]
        return Figure(float(np.median(values)), values)

    said = command.format(folder="", out="").replace(" /", " ")
    return {
        "what": name,
        "command": f"lpma {said}",
        "seconds": median(lambda run: run.seconds),
        "processor seconds": median(lambda run: run.cpu_seconds),
        "MiB": median(lambda run: run.peak_mib),
    }


def _run(command: str, folder: Path) -> Run:
    """Raises WrongAnswer if the command fails."""
    with tempfile.TemporaryDirectory() as out, tempfile.TemporaryFile() as said:
        words = [word.format(folder=folder, out=out) for word in command.split()]
        program = [sys.executable, "-c", "from ingest.cli import main; main()", *words]
        started = time.perf_counter()
        environment = {**os.environ, "LPMA_COMPILE": "ahead"}
        process = subprocess.Popen(program, stdout=said, stderr=said, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise WrongAnswer(f"lpma {command}: {said.read().decode(errors='replace')}")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10  # in which it tells memory
    return Run(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / unit)


def _inputs(size: Scale) -> Path:
    """The folder with the inputs of that size, made if they are not there."""
    name = f"lpma-benchmark-commands-{os.getuid()}-{'-'.join(map(str, size))}"
    folder = Path(tempfile.gettempdir()) / name
    folder.mkdir(mode=0o700, exist_ok=True)
    for what, draws in (("big", size.draws), ("named", size.named_draws)):
        table, store = folder / f"{what}.parquet", folder / f"{what}.lpma"
        if not table.exists():
            _write_table(table, size.scale, draws, what == "named")
        if not store.exists():
            _run(f"load {{folder}}/{what}.parquet {{folder}}/{what}.lpma", folder)
    return folder


def _write_table(path: Path, scale: int, draws: int, is_named: bool) -> None:
    import pyarrow
    import pyarrow.parquet

    ends = rmat(scale, draws)
    text = pyarrow.array([f"user-{i:07d}" for i in range(1 << scale)]) if is_named else None
    kind = pyarrow.uint32() if text is None else pyarrow.string()
    schema = pyarrow.schema([("src", kind), ("dst", kind)])
    unfinished = path.with_suffix(".tmp")
    with pyarrow.parquet.ParquetWriter(unfinished, schema) as writer:
        for first in range(0, draws, PIECE):
            columns = [pyarrow.array(column[first : first + PIECE]) for column in ends]
            if text is not None:
                columns = [text.take(column) for column in columns]
            writer.write_batch(pyarrow.RecordBatch.from_arrays(columns, schema=schema))
    os.replace(unfinished, path)
