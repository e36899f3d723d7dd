"""What an experiment found: a table on the screen, rows in JSON, and a plot where one helps."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .gpu import device

_PACKAGES = (
    "lpma-graph", "numpy", "numba", "scipy", "networkit", "python-graphblas", "igraph",
    "cupy-cuda12x", "cupy-cuda13x",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """How an experiment is to run."""

    quick: bool = False
    only: frozenset[str] = frozenset()  # stores to run; empty: all
    folder: Path = Path("bench-results")  # where plots go
    budget_s: float = float("inf")  # no part of a GPU experiment starts after this many seconds
    begun: float = field(default_factory=time.perf_counter)

    def wants(self, store: str) -> bool:
        return not self.only or store in self.only

    def out_of_time(self) -> bool:
        return time.perf_counter() - self.begun > self.budget_s


@dataclass
class Report:
    """Rows of one table. Every row has the same fields, in the table's order."""

    name: str
    title: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plots: list[str] = field(default_factory=list)
    series: dict[str, list[float]] = field(default_factory=dict)  # what the plots show, for JSON

    def add(self, row: dict[str, Any]) -> None:
        """Append a row, and say so while the rest is still being measured."""
        self.rows.append(row)
        line = "  ".join(f"{key} {_cell(value)}" for key, value in row.items())
        print(f"  {line}", file=sys.stderr, flush=True)

    def text(self) -> str:
        """The table as Markdown, numbers aligned to the right."""
        lines = [f"## {self.name}: {self.title}", ""]
        if self.rows:
            header = list(self.rows[0])
            cells = [header, *([_cell(row[key]) for key in header] for row in self.rows)]
            numeric = [isinstance(self.rows[0][key], int | float) for key in header]
            width = [max(len(row[i]) for row in cells) for i in range(len(header))]
            rule = [
                "-" * (w - 1) + (":" if right else "-")
                for w, right in zip(width, numeric, strict=True)
            ]
            lines += [_line(row, width, numeric) for row in (cells[0], rule, *cells[1:])]
        lines += ["", *self.notes] if self.notes else []
        lines += [f"plot: {path}" for path in self.plots]
        return "\n".join(lines) + "\n"


def _line(cells: Sequence[str], width: Sequence[int], numeric: Sequence[bool]) -> str:
    columns = zip(cells, width, numeric, strict=True)
    return "| " + " | ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in columns) + " |"


def _cell(value: Any) -> str:
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    packages: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {
        "processor": _processor(),
        "device": None if device.why_none() else device.name(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "packages": packages,
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def write_json(path: Path, reports: Sequence[Report], quick: bool) -> None:
    """All reports of a run. NaN is written as null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {"machine": machine(), "quick": quick, "reports": [asdict(r) for r in reports]}
    path.write_text(json.dumps(_plain(found), indent=1, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    """`value` in JSON's own types."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if value != value else value
