"""Files are whole or absent, whatever call of the system fails."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from lpma.file.atomic import atomic_write


def test_atomic_write_follows_links_and_keeps_modes(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"new")
        assert target.read_bytes() == b"old"
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    with atomic_write(tmp_path / ("n" * 255)) as file:
        file.write(b"long names too")
    assert (tmp_path / ("n" * 255)).read_bytes() == b"long names too"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_atomic_write_survives_each_failing_call(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")

    def fail(*arguments: Any) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(OSError), atomic_write(target) as file:
            file.write(b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with pytest.raises(OSError, match=r"No space.*file'$"), atomic_write(target):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []
