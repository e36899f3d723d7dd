"""What processes share is made once, and by another where the first has failed."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.turns import made_once


def test_many_ask_and_one_makes(tmp_path_factory: pytest.TempPathFactory) -> None:
    made: list[Path] = []
    tmp_path_factory.getbasetemp()  # which two threads would make twice

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "whole").touch()

    def ask(_: int) -> bool:
        return (made_once(tmp_path_factory, f"once-{os.getpid()}", make) / "whole").is_file()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(8)))
    assert len(made) == 1


def test_what_failed_is_made_by_the_next(tmp_path_factory: pytest.TempPathFactory) -> None:
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.append(folder)
        assert len(made) > 1, "the first fails"

    name = f"again-{os.getpid()}"
    with pytest.raises(AssertionError, match="the first fails"):
        made_once(tmp_path_factory, name, make)
    for _ in range(2):
        made_once(tmp_path_factory, name, make)
    assert len(made) == 2
