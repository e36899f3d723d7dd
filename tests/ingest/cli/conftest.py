"""What the tests of the command line begin with: an edge file, and a store made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import run

EDGES = [(0, 1), (0, 2), (1, 2), (2, 0), (0, 1), (3, 3)]


@pytest.fixture
def edge_file(tmp_path: Path) -> Path:
    path = tmp_path / "edges.txt"
    path.write_text("# src dst\n" + "".join(f"{u} {v}\n" for u, v in EDGES))
    return path


@pytest.fixture
def store(edge_file: Path, tmp_path: Path) -> Path:
    path = tmp_path / "store.lpma"
    run("load", edge_file, path, "--predecessors")
    return path
