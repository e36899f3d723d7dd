"""docs/performance.md and the figures of the README, made of what `headline` found: `python -m
benchmarks page`.

Each machine has a file, results/MACHINE.json:

    machine    as machine.describe() has it, and a title
    notes      what a reader should know of the run
    cpu, cuda  by row: `ms` of ours ("lpma") and of each other, medians; the `least` and how many
               `rounds`; `missing`, the others that are not installed; the `command`, its `date` and
               the `commit`. A row that `headline` did not measure says where it is `quoted` from
    kept       other figures: in which `table`, `what`, `ours`, `beside`, and as above

A row with `readme`, which says what it is to whoever has not read the page, is in the README, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .report import Report, Setting
from .stopwatch import NAN

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "performance.md"
README = ROOT / "README.md"
_IN_README = re.compile("(<!-- figures[^>]*-->\n).*?(<!-- /figures -->)", re.DOTALL)
OURS = "lpma"
UNMEASURED = "not measured on this machine"
COMMAND = "`python -m benchmarks …`"  # the head of the column

STORES = ("scipy", "numpy", "networkit", "graphblas")
LIBRARIES = ("networkit", "graphblas", "igraph", "scipy")


class Row(NamedTuple):
    """What it measures on the CPU and on a device, and its rivals on the CPU."""

    table: str
    cpu: str
    cuda: str
    others: tuple[str, ...]


ROWS = {
    "insert-10": Row("store", "insert 10", "insert 10", STORES),
    "insert-1000": Row("store", "insert 10^3", "insert 10^3", STORES),
    "insert-100000": Row("store", "insert 10^5", "insert 10^5", STORES),
    "insert-1000000": Row("store", "insert 10^6", "insert 10^6", STORES),
    "delete-100000": Row("store", "delete 10^5", "delete 10^5", STORES),
    "mixed": Row("store", "insert 10^4, with 3 % queries in between",
                 "insert 10^5, with 3 % queries in between", ("numpy", "networkit")),
    "edges": Row("store", "ask for 10^4 edges", "ask for 10^5 edges, ids on the device", STORES),
    "snapshot": Row("store", "a snapshot, as CSR", "a snapshot, as CSR",
                    ("scipy", "numpy", "graphblas")),
    "core": Row("analyses", "core numbers", "core numbers, views there", LIBRARIES[:3]),
    "triangles": Row("analyses", "triangles", "triangles", LIBRARIES[:3]),
    "pagerank": Row("analyses", "PageRank", "PageRank, from the store", LIBRARIES[:3]),
    "truss": Row("analyses", "10-truss, RMAT 14", "full truss decomposition", ("graphblas",)),
    "records": Row("analyses", "100,000 JSON records into a graph",
                   "4 M operations, in columns, through a pipeline",
                   ("networkx", "networkit", "scipy", "numpy")),
}  # fmt: skip
SUBJECTS = {"store": "batches, queries and a snapshot", "analyses": "analyses and a stream"}
ABOUT = {
    ("cpu", "store"): "A directed RMAT graph of scale 18, 2.1 M edges loaded. The snapshot is of a "
    "graph that an edge was just inserted into; scipy and graphblas keep a CSR, and copy it.",
    ("cpu", "analyses"): "RMAT 18, 3.9 M edges, from the store: each after a small batch, with the "
    "snapshot and all views; the others have their graph ready made.",
    ("cuda", "store"): "A directed RMAT graph of scale 20, 10 M edges loaded; from pinned host "
    "memory until the device is idle.",
    ("cuda", "analyses"): "RMAT 20, 16.8 M edges.",
}
_OPENING = """\
<!-- `python -m benchmarks page` makes this page of benchmarks/results/; change it there. -->

# Performance

What takes how long, beside the fastest other that can be installed. Rivals take turns in one
process after a warm-up, figures are medians, and every result is verified before its time counts.
*ratio* is the other's time to ours: above 1, lpma is faster. Our store keeps float32 weights and
int64 times throughout; the others keep less. `make bench` measures the rows of this machine
anew. How experiments are run and read: [benchmarks](development/benchmarks.md); how the figures
came about: [notes](development/notes/README.md).
"""


def page(setting: Setting) -> list[Report]:
    PAGE.write_text(text(kept()), encoding="utf-8")
    README.write_text(readme(README.read_text("utf-8"), kept()), encoding="utf-8")
    return []


def kept() -> list[dict[str, Any]]:
    """The results of all machines, by their files' names."""
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]


def text(machines: Sequence[Mapping[str, Any]]) -> str:
    """The page that these results make."""
    return "\n".join([_OPENING, *(line for found in machines for line in _machine(found))])


def readme(text: str, machines: Sequence[Mapping[str, Any]]) -> str:
    """The README with the figures that are shown there. REQUIRES: it has a place for them."""
    rows = []
    for found in machines:
        for row in (*found["cuda"].values(), *found["kept"]):
            if "readme" in row:
                rows.append((row["readme"], *_in_brief(row), _command(row["command"])))
    table = "\n".join(_table(("", "lpma", "compared with", COMMAND), rows)).strip()
    changed, places = _IN_README.subn(lambda place: f"{place[1]}{table}\n{place[2]}", text)
    assert places == 1, "README.md: there is no place for figures"
    return changed


def _in_brief(row: Mapping[str, Any]) -> tuple[str, str]:
    """Ours, and the fastest other."""
    if "ms" not in row:
        return row["ours"], row["beside"]
    other, ms = fastest(row)
    return f"{_number(row['ms'][OURS])} ms", f"{other} {_number(ms)} ms"


def _machine(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {found['machine']['title']}\n"
    for note in found["notes"]:
        yield f"{note}\n"
    for device, words in (("cpu", "On two cores"), ("cuda", "On the device")):
        if not found[device]:
            yield f"{words}: {UNMEASURED}.\n"
            continue
        for table, subject in SUBJECTS.items():
            names = [name for name, row in ROWS.items() if row.table == table]
            measured = {name: found[device].get(name) for name in names}
            yield f"### {words}: {subject}\n"
            yield f"{ABOUT[device, table]} {_when(filter(None, measured.values()))}\n"
            yield from _rows(device, measured)
    for table in dict.fromkeys(row["table"] for row in found["kept"]):
        rows = [row for row in found["kept"] if row["table"] == table]
        yield f"### {table}\n"
        yield f"{_when(rows)}\n"
        yield from _table(("what", "ours", "beside", COMMAND), (
            (row["what"], row["ours"], row["beside"], _command(row["command"])) for row in rows
        ))  # fmt: skip


def _when(rows: Iterable[Mapping[str, Any]]) -> str:
    """When rows were measured and at which commits, or when what is quoted was written down."""
    by_source: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_source.setdefault(row.get("quoted", ""), []).append(row)
    said = []
    for source, of_it in by_source.items():
        dates = sorted(row["date"] for row in of_it)
        when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
        commits = ", ".join(sorted({row["commit"][:8] for row in of_it if row["commit"]}))
        what = f"Quoted from {source} of" if source else "Measured"
        said.append(f"{what} {when}{f' ({commits})' if commits else ''}.")
    return " ".join(said)


def _rows(device: str, found: Mapping[str, Mapping[str, Any] | None]) -> Iterator[str]:
    """Times of the CPU are left out: the next virtual machine has others."""
    head = ["what", "ms", "fastest other", "its ms", "ratio", COMMAND]
    places, asked = (
        ((0, 2, 4, 5), "") if device == "cpu" else ((0, 1, 2, 3, 4, 5), " --device cuda")
    )
    lines = []
    for name, row in found.items():
        line = [getattr(ROWS[name], device), *[""] * 4, _command(f"headline --only {name}{asked}")]
        if row is None:
            line[places[1]] = UNMEASURED
        else:
            other, ms = fastest(row)
            ours = row["ms"][OURS]
            missing = ", ".join(row.get("missing", ()))
            shown = f"{other or 'none'}{f' (not installed: {missing})' if missing else ''}"
            line[1:5] = _number(ours), shown, _number(ms), _number(ms / ours)
            line[5] = _command(row["command"])
        lines.append([line[i] for i in places])
    yield from _table([head[i] for i in places], lines)


def _command(command: str) -> str:
    """What makes a figure; of one that no command makes any more, the note that tells of it."""
    return f"[note]({command})" if command.endswith(".md") else f"`{command}`"


def fastest(row: Mapping[str, Any]) -> tuple[str, float]:
    """The fastest other of a row and its milliseconds; "" and NaN if there is none."""
    others = {name: ms for name, ms in row["ms"].items() if name != OURS}
    best = min(others, key=others.__getitem__, default="")
    return best, others.get(best, NAN)


def _number(value: float) -> str:
    if value != value:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    rule = ["---:" if name in ("ms", "its ms", "ratio") else "---" for name in head]
    for row in (head, rule, *rows):
        yield f"| {' | '.join(row)} |"
    yield ""
