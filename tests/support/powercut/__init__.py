"""A power-cut simulator, as LevelDB's fault_injection_test is one.

Idea: a case runs once, in a child whose every call on one directory is recorded (recorder.c, which
sees SQLite's calls too). From the trace, the directory is rebuilt as it could be after a power cut
at any moment (disk.py), and what is promised is checked there: thousands of cuts from one run.

    trace.py      recording, and reading a trace       cases.py, pipelines.py, logs.py, saves.py,
    disk.py       what a cut may leave                 served.py     what runs, what must hold
    child.py      what runs in the child               mutants.py    durability, taken away
"""

from __future__ import annotations

import json
import marshal
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, mkdtemp

from .cases import Case
from .disk import Disk, Tree, moments, write_tree
from .logs import Log
from .pipelines import CutShort, Embedded, Remote
from .saves import Save
from .served import Served
from .trace import Op, Unavailable, going_on, preloaded, read_trace

__all__ = ["CASES", "Recorder", "Run", "Unavailable", "in_memory"]

CASES: dict[str, Case] = {
    "remote": Remote(),
    "racing": Remote(held=False),
    "cut short": CutShort(),
    "embedded": Embedded(),
    "log": Log(),
    "new log": Log(appends=1),
    "save": Save(),
    "served": Served(),
}
ROOT = Path(__file__).parents[3]


class Run:
    """A case that has run, in `directory`, and what it did to its disk there. `before`: what was
    done to it earlier, by a process that was killed."""

    def __init__(self, case: Case, directory: Path, before: Sequence[Op] = ()) -> None:
        self.case = case
        self.directory = directory
        self.ops = read_trace(directory / "trace", directory / "disk")
        if before:
            self.ops = going_on(list(before), self.ops)
        self.places = set(json.loads((directory / "places").read_text()))
        self.marks: list[bytes] = []  # of earlier runs, before a power cut
        self._checked: set[bytes] = set()  # what was left, and promised, as digests

    def check(self, cuts: int, seed: int) -> None:
        """Cut the power so many times, and check what is left each time, but nothing twice: many
        cuts leave the same. Raises AssertionError, which names the cut, where a promise is
        broken."""
        for number, (at, disk, tree) in enumerate(self.cuts(cuts, seed)):
            left = sha256(marshal.dumps((tree, disk.marks), 2)).digest()
            if left in self._checked:
                continue
            root = self.directory / "left"
            write_tree(tree, root)
            try:
                self.case.check(self.directory, root, self.marks + disk.marks)
            except Exception as error:
                raise AssertionError(
                    f"seed {seed}, cut {number}, after call {at}: {error}"
                ) from error
            finally:
                shutil.rmtree(root)
            self._checked.add(left)

    def cuts(self, count: int, seed: int) -> Iterator[tuple[int, Disk, Tree]]:
        """What so many cuts leave: after how many calls, the disk then, what is left of it."""
        for number, (at, disk) in enumerate(moments(self.ops, Random(seed), count)):
            yield at, disk, disk.cut(Random(f"{seed}/{number}"))


class Recorder:
    """Runs cases in children, each in a directory of its own below `directory`."""

    def __init__(self, directory: Path) -> None:
        """Raises Unavailable where nothing can be recorded here."""
        if sys.platform != "linux":
            raise Unavailable("LD_PRELOAD and recorder.c are for Linux")
        self._directory = directory
        self._library = preloaded(directory)

    def run(self, name: str, mutant: str | None = None) -> Run:
        """Run a case on an empty disk. `mutant`: see mutants.py."""
        directory = self._prepared(name)
        self._in_child([(name, directory, mutant)])
        return Run(CASES[name], directory)

    def run_all(self) -> dict[str, Run]:
        """Run each case on an empty disk, all in one child."""
        directories = {name: self._prepared(name) for name in CASES}
        self._in_child([(name, directory, None) for name, directory in directories.items()])
        return {name: Run(CASES[name], directory) for name, directory in directories.items()}

    def _prepared(self, name: str) -> Path:
        directory = Path(mkdtemp(dir=self._directory))
        CASES[name].prepare(directory)
        (directory / "disk").mkdir()
        return directory

    def after_power_cuts(self, name: str, first: Run, count: int, seed: int) -> list[Run]:
        """Cut the power `count` times in a run, and run the case each time on what is left."""
        cuts = [(disk.marks[:], tree) for _, disk, tree in first.cuts(count, seed)]
        runs = []
        for (marks, _), directory in zip(
            cuts, self._run_on(name, first, [t for _, t in cuts]), strict=True
        ):
            runs.append(Run(first.case, directory))
            runs[-1].marks = first.marks + marks
        return runs

    def after_kills(self, name: str, first: Run, count: int, seed: int) -> list[Run]:
        """Kill a run at `count` moments, and run the case each time on what is there: of what the
        first did not sync, nothing is lost yet."""
        kills = [(at, disk.running()) for at, disk, _ in first.cuts(count, seed)]
        directories = self._run_on(name, first, [tree for _, tree in kills])
        return [
            Run(first.case, directory, first.ops[:at])
            for (at, _), directory in zip(kills, directories, strict=True)
        ]

    def _run_on(self, name: str, first: Run, trees: Sequence[Tree]) -> list[Path]:
        """Run a case on each of these, beside what the first run had beside its disk."""
        directories = []
        for tree in trees:
            directory = Path(mkdtemp(dir=self._directory))
            for path in first.directory.iterdir():
                if path.is_file():
                    shutil.copy(path, directory)
            write_tree(tree, directory / "disk")
            directories.append(directory)
        self._in_child([(name, directory, None) for directory in directories])
        return directories

    def _in_child(self, jobs: Sequence[tuple[str, Path, str | None]]) -> None:
        told = json.dumps([(name, str(directory), mutant) for name, directory, mutant in jobs])
        environment = {
            **os.environ,
            "LD_PRELOAD": str(self._library),
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-m", "tests.support.powercut.child", told]
        child = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert child.returncode == 0, child.stderr


@contextmanager
def in_memory(otherwise: Path) -> Iterator[Path]:
    """A temporary directory in memory, where there is such a file system."""
    if os.access("/dev/shm", os.W_OK):
        with TemporaryDirectory(prefix="lpma-powercut-", dir="/dev/shm") as directory:
            yield Path(directory)
    else:
        yield otherwise
