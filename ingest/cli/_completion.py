"""What a shell completes besides the names of options: datasets, figures, and the columns of a file
that stands on the line. Nothing here may fail, and what is slow to import waits for its turn."""

from __future__ import annotations

from pathlib import Path

import typer


def sources(incomplete: str) -> list[str]:
    """Files and datasets: what `lpma load`, `run` and `info` take."""
    from ..datasets.catalog import CATALOG

    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    try:
        files = [f"{path}/" if path.is_dir() else str(path) for path in folder.iterdir()]
    except OSError:
        files = []
    return [*CATALOG, *sorted(files)]


def figures(incomplete: str) -> list[str]:
    """Figures that are tracked, the last of a list."""
    from ..results.figures import FIGURES

    before, comma, _ = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in FIGURES if name not in before.split(",")]


def columns(context: typer.Context) -> list[str]:
    """The columns of the file that is read, or the fields of its records."""
    from ..errors import IngestError
    from ..sources.files.edges import read_edges

    # An option without its value ends the parsing: then arguments are words that are left over.
    words = [*context.params.values(), *context.args]
    path = next((w for w in words if isinstance(w, str | Path) and Path(w).is_file()), None)
    try:
        return [] if path is None else list(map(str, read_edges(path).reading.columns))
    except IngestError:
        return []
