"""What an experiment found: a table on the screen, rows and samples in JSON, plots."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .stopwatch import NAN, Figure, Timing

Row = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """How an experiment is to run."""

    quick: bool = False
    only: frozenset[str] = frozenset()  # stores to run; empty: all
    folder: Path = Path("bench-results")  # where plots go
    budget_s: float = float("inf")  # no part of a GPU experiment starts after this many seconds
    base: Path | None = None  # `compare`: the other tree
    device: str = "cpu"  # `compare`: "cpu" or "cuda"
    asked: set[str] = field(default_factory=set)  # names that `only` was compared with
    begun: float = field(default_factory=time.perf_counter)

    def wants(self, store: str) -> bool:
        self.asked.add(store)
        return not self.only or store in self.only

    def out_of_time(self) -> bool:
        return time.perf_counter() - self.begun > self.budget_s


@dataclass
class Report:
    """Rows of one table. Every row has the same fields, in the table's order."""

    name: str
    title: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plots: list[str] = field(default_factory=list)
    series: dict[str, list[float]] = field(default_factory=dict)  # what the plots show, for JSON

    def add(self, row: Row) -> None:
        """Append a row, and print it while the rest is still being measured."""
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

    def plain(self) -> dict[str, Any]:
        """The report in JSON's own types. "samples" has, row by row, what each figure was made of,
        in the unit of the row."""
        return {
            "name": self.name, "title": self.title, "rows": _plain(self.rows),
            "samples": [_plain(_samples(row)) for row in self.rows],
            "notes": self.notes, "plots": self.plots, "series": _plain(self.series),
        }  # fmt: skip


def beside(timings: Mapping[str, Timing], peers: Iterable[str], per_s: float = 1.0) -> Row:
    """Columns for `lpma` and its peers, medians in seconds times per_s (None if one was not run),
    and *ratio*: the fastest of the peers to ours."""
    found = {name: timing.median * per_s for name, timing in timings.items()}
    row: Row = {name: found.get(name) for name in ("lpma", *peers)}
    others = [value for name, value in found.items() if name != "lpma"]
    return row | {"ratio": min(others, default=NAN) / found.get("lpma", NAN)}


def rates(
    timings: Mapping[str, Timing], size: int, names: Iterable[str], peers: Iterable[str]
) -> Row:
    """Columns for all names, millions a second in batches of `size` (NaN: not run), and *ratio*:
    ours to the fastest of the peers."""
    found = {name: size / timing.median / 1e6 for name, timing in timings.items()}
    best = max((found[name] for name in peers if name in found), default=NAN)
    return {name: found.get(name, NAN) for name in names} | {"ratio": found.get("lpma", NAN) / best}


def write_json(path: Path, reports: Sequence[Report], quick: bool, machine: Row) -> None:
    """All reports of a run and the machine it ran on; NaN and infinity as null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {
        "machine": machine,
        "command": sys.argv[1:],
        "quick": quick,
        "reports": [report.plain() for report in reports],
    }
    path.write_text(json.dumps(_plain(found), indent=1, allow_nan=False) + "\n")


def _samples(row: Row) -> Row:
    return {key: value.samples for key, value in row.items() if isinstance(value, Figure)}


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


def _plain(value: Any) -> Any:
    """`value` in JSON's own types."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
