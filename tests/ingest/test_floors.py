"""The road's files stand on floors, and import from their own floor or from one below, and
nothing that stands on none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.test_package import ROOT, imports

FLOORS = (
    (
        "closing",
        "errors",
        "events",
        "interludes",
        "ladder",
        "lane",
        "naming",
        "rules",
        "stream_graph",
        "timers",
        "tracking",
        "types",
        "waiting",
    ),
    ("formats",),
    ("publishing",),
    ("settings", "window"),
    ("batcher", "lateness", "mapping", "sources"),
    ("state",),
    ("queries", "results"),
    ("first_records",),
    ("admission",),
    ("feed", "progress", "sliding", "starting"),
    ("following",),
    ("steps",),
    ("pipeline",),
)
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
FILES = sorted(
    path
    for path in (ROOT / "ingest").rglob("*.py")
    if path.relative_to(ROOT / "ingest").parts[0].removesuffix(".py") in FLOOR
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_imported_from_above(path: Path) -> None:
    own = FLOOR[path.relative_to(ROOT / "ingest").parts[0].removesuffix(".py")]
    found = [(name.split("."), name, line) for name, line in imports(path)]
    within = {line for parts, _, line in found if parts[0] == "ingest" and len(parts) > 1}
    for parts, name, line in found:
        if parts[0] != "ingest":
            continue
        if len(parts) == 1:
            assert line in within, f"line {line}: the whole package, which stands above"
        else:
            assert FLOOR.get(parts[1], len(FLOORS)) <= own, f"line {line}: {name}"
