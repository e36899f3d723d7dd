"""Where compiled kernels are kept: never stale, never without limit, and readable without Numba."""

from __future__ import annotations

import ctypes
import errno
import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lpma
from lpma.cpu import cache, column_kernels, jit
from lpma.host import tell

pytestmark = pytest.mark.integration

TREE = {
    "lpma/__init__.py": "",
    "lpma/cpu/__init__.py": "",
    "lpma/cpu/jit.py": "import numba",
    "lpma/constants.py": "from .unrelated import x\nN = 1",
    "lpma/unrelated.py": "x = 1",
    "lpma/parts.py": "from .cpu.jit import inlined\nfrom .constants import (\n    N,\n)",
    "lpma/kernels.py": "from .cpu.jit import compiled\nfrom . import parts",
    "lpma/other.py": "from .cpu.jit import compiled",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small tree of sources in place of the project's."""
    for name, text in TREE.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(cache, "ROOT", tmp_path / "src")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    forget()
    yield tmp_path / "src"
    forget()


def forget() -> None:
    for function in (cache.directory, cache.source_key, cache._file, cache._text):
        function.cache_clear()


def key(module: str) -> str:
    forget()
    return cache.source_key(module)


@pytest.mark.parametrize(
    "edited", ["lpma/kernels.py", "lpma/parts.py", "lpma/constants.py", "lpma/cpu/jit.py"]
)
def test_a_kernel_is_compiled_anew_when_anything_that_it_is_made_of_has_changed(
    tree: Path, edited: str
) -> None:
    before = key("lpma.kernels")
    (tree / edited).write_text(TREE[edited] + "\n")
    assert key("lpma.kernels") != before
    (tree / edited).write_text(TREE[edited])
    assert key("lpma.kernels") == before


@pytest.mark.parametrize("edited", ["lpma/unrelated.py", "lpma/other.py"])
def test_and_not_when_something_else_has(tree: Path, edited: str) -> None:
    before = key("lpma.kernels")
    (tree / edited).write_text("changed = True")
    assert key("lpma.kernels") == before


def test_of_a_modules_folders_the_last_used_stay(tree: Path) -> None:
    folders = []
    for state in range(cache.KEPT + 3):
        (tree / "lpma/kernels.py").write_text(f"{TREE['lpma/kernels.py']}\n# {state}")
        forget()
        folders.append(cache.folder("lpma.kernels"))
        cache.make(folders[-1])
        os.utime(folders[-1], (state, state))
    cache.make(cache.folder("lpma.other"))
    kept = cache.directory()
    assert sorted(path.name for path in kept.iterdir()) == sorted(
        path.name for path in (*folders[3:], cache.folder("lpma.other"))
    ), "nothing of those that were evicted is left"
    assert [folder.is_dir() for folder in folders] == [False] * 3 + [True] * cache.KEPT
    assert cache.folder("lpma.other").is_dir()


def test_folders_that_were_used_lately_stay_however_many(tree: Path) -> None:
    """So many checkouts may share the cache."""
    used = []
    for state in range(cache.KEPT + 3):
        (tree / "lpma/kernels.py").write_text(f"{TREE['lpma/kernels.py']}\n# {state}")
        forget()
        used.append(cache.folder("lpma.kernels"))
        cache.make(used[-1])
        if state % 2:
            os.utime(used[-1], (state, state))
            cache.note_use(used[-1])
    assert all(folder.is_dir() for folder in used)


def test_an_eviction_that_was_interrupted_is_ended(tree: Path) -> None:
    half = cache.directory() / f"{cache._EVICTED}lpma.kernels-0"
    (half / "deeper").mkdir(parents=True)
    cache.make(cache.folder("lpma.kernels"))
    assert not half.exists()


def test_where_nothing_can_be_written_kernels_last_as_long_as_the_process(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    forget()
    assert cache.is_temporary(cache.directory())
    with pytest.raises(lpma.LpmaError, match="LPMA_CACHE"):
        lpma.compile()


def test_a_read_only_installation_keeps_kernels_in_the_users_cache(tmp_path: Path) -> None:
    """Nothing is written beside the sources, and a second process compiles nothing."""
    folder = use(tmp_path, hits=0, told="first_not_below in")
    assert folder.is_relative_to(tmp_path)
    use(tmp_path, hits=1, told="")


USE = """
from lpma.cpu.search import first_not_below
import numpy as np
assert first_not_below(np.array([1, 2, 3]), 0, 3, 2) == 1
import sys
print(sum(first_not_below.stats.cache_hits.values()), first_not_below._cache.cache_path)
print("numba.np.linalg" in sys.modules)
"""


def use(kept: Path, *, hits: int, told: str) -> Path:
    """Call a kernel in a new process. Returns where it is kept."""
    done = subprocess.run(
        [sys.executable, "-c", USE], env={**os.environ, "NUMBA_CACHE_DIR": str(kept)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found, path, loaded = done.stdout.split()
    assert int(found) == hits
    assert loaded == str(hits == 0), "what compiling needs is loaded to compile, and not to read"
    assert told in done.stderr
    assert told or done.stderr == ""
    return Path(path)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A cache with one kernel, to be copied; and where in it the kernel is kept."""
    kept = tmp_path_factory.mktemp("kept")
    return kept, use(kept, hits=0, told="first_not_below in").relative_to(kept)


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [b"", b"\x80", b"garbage"], ids=["empty", "cut", "garbage"])
def test_a_damaged_file_is_told_and_made_again(
    filled: tuple[Path, Path], tmp_path: Path, suffix: str, damage: bytes
) -> None:
    shutil.copytree(filled[0], tmp_path, dirs_exist_ok=True)
    folder = tmp_path / filled[1]
    stamp = folder / f"{cache.STAMP}0"
    stamp.touch()
    for path in folder.glob(f"*.{suffix}"):
        path.write_bytes(damage)
    use(tmp_path, hits=0, told="cannot be read from the cache")
    assert not stamp.exists()
    use(tmp_path, hits=1, told="")


SLOWLY = """
from lpma.cpu.search import first_not_below
import numpy as np, sys
first_not_below._cache.load_overload((), first_not_below.targetctx)  # the folder is known
print(flush=True)
sys.stdin.readline()
assert first_not_below(np.array([1, 2, 3]), 0, 3, 2) == 1
"""


def test_what_is_evicted_under_a_process_is_made_again(
    filled: tuple[Path, Path], tmp_path: Path
) -> None:
    shutil.copytree(filled[0], tmp_path, dirs_exist_ok=True)
    folder = tmp_path / filled[1]
    with subprocess.Popen(
        [sys.executable, "-c", SLOWLY], env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        cache._evict(folder)
        _, told = process.communicate("\n")
    assert process.returncode == 0, told
    assert "cannot be" not in told
    use(tmp_path, hits=1, told="")


def test_a_kernel_that_cannot_be_kept_is_told_and_used(
    filled: tuple[Path, Path], tmp_path: Path
) -> None:
    shutil.copytree(filled[0], tmp_path, dirs_exist_ok=True)
    folder = tmp_path / filled[1]
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.write_text("no directory")
    use(tmp_path, hits=0, told="cannot be kept in")


def test_without_a_home_kernels_last_as_long_as_the_process(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.delenv("LPMA_CACHE", raising=False)
    monkeypatch.setattr(Path, "home", fail)
    forget()
    assert cache.is_temporary(cache.directory())
    monkeypatch.delenv("NUMBA_CACHE_DIR")


def test_a_cache_that_another_user_has_filled_is_read(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = cache.directory()
    stamp = filled / "lpma.kernels-0" / f"{cache.STAMP}0"
    stamp.parent.mkdir()
    stamp.touch()

    def fail(**_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("tempfile.TemporaryFile", fail)
    forget()
    assert cache.directory() == filled
    stamp.unlink()
    forget()
    assert cache.is_temporary(cache.directory())
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")


class Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "no space")


@pytest.mark.parametrize("stderr", ["absent", "closed", "full"])
def test_a_line_that_nobody_can_read_does_no_harm(
    stderr: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = {"absent": None, "closed": io.StringIO(), "full": Full()}[stderr]
    if stderr == "closed":
        assert stream is not None
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    tell("something")


def test_an_interrupt_while_a_kernel_is_read_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM calls back through ctypes, which drops what is raised there."""
    callback = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(jit._Kept, "_load_overload", lambda self, *of: callback())
    kernel = column_kernels.list_rows
    with pytest.raises(KeyboardInterrupt):
        kernel._cache.load_overload(None, kernel.targetctx)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
