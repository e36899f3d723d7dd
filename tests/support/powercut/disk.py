"""What a power cut may leave of a directory, after the calls of a trace up to some moment.

The model is POSIX at its strictest, where nothing lasts that was not synced, and what was not may
have come to the disk in any order:

1. A file has what it had at its last fsync. Of each page written since, any version may be there,
   or, torn, the bytes of two of them; its length is any that it had meanwhile. What lies within
   the length and came never to the disk is zeros, or garbage.
2. A directory has the names it had at its last fsync. Of what happened to its names since, a part
   has happened: the first so many changes, or any of them. A rename is one change.
3. The fsync of a file does not keep its name, nor that of a directory its own name.

`Disk` replays a trace; `cut` draws one tree that could be left. All that is drawn comes from the
generator given, so a cut is named by its trace, its place and a seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from random import Random

from .trace import (
    CREATE,
    FOUND,
    LINK,
    MARK,
    MKDIR,
    REMOVE,
    RENAME,
    SYNC,
    TRUNCATE,
    WRITE,
    Op,
    begin,
)

PAGE_BYTES = 4096
TORN = 0.2  # of the pages are, where a file comes in pages

Tree = dict[str, "Tree | bytes"]  # a directory, by name


@dataclass(eq=False)
class File:
    """Whatever names it has."""

    synced: bytes = b""
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)  # None: cut to a size

    def sync(self) -> None:
        self.synced = bytes(_changed(self.synced, self.changes))
        self.changes.clear()

    def cut(self, rng: Random, keep: float) -> bytes:
        """`keep`: how likely each change is to have come to the disk."""
        if not self.changes or keep == 0:
            return self.synced
        if keep == 1:
            return bytes(_changed(self.synced, self.changes))
        if rng.random() < 0.4:
            return self._first_changes(rng, keep)
        return self._pages(rng, keep)

    def _first_changes(self, rng: Random, keep: float) -> bytes:
        """All up to some change, which may be torn."""
        count = _some(rng, keep, len(self.changes))
        done = list(self.changes[:count])
        if count < len(self.changes):
            at, data = self.changes[count]
            if data is not None:
                done.append((at, data[: rng.randrange(len(data))]))
        return bytes(_changed(self.synced, done))

    def _pages(self, rng: Random, keep: float) -> bytes:
        """Each page, and the length, as after any number of the changes."""
        versions = [self.synced]
        for change in self.changes:
            versions.append(bytes(_changed(versions[-1], [change])))

        def some() -> bytes:
            return versions[_some(rng, keep, len(self.changes))]

        size = len(some())
        garbage = rng.random() < 0.3
        content = bytearray()
        for start in range(0, size, PAGE_BYTES):
            page, other = (some()[start : start + PAGE_BYTES] for _ in range(2))
            if rng.random() < TORN:
                at = rng.randrange(PAGE_BYTES)
                page = page[:at].ljust(min(at, len(other)), b"\0") + other[at:]
            missing = min(PAGE_BYTES, size - start) - len(page)
            page += rng.randbytes(missing) if garbage and missing > 0 else bytes(max(0, missing))
            content += page
        return bytes(content[:size])


@dataclass(eq=False)
class Directory:
    """What lies in it, by name."""

    synced: dict[str, Node] = field(default_factory=dict)
    names: dict[str, Node] = field(default_factory=dict)  # as the running system has them
    changes: list[dict[str, Node | None]] = field(default_factory=list)  # None: no longer

    def change(self, names: Mapping[str, Node | None]) -> None:
        self.changes.append(dict(names))
        _rename(self.names, names)

    def sync(self) -> None:
        self.synced = dict(self.names)
        self.changes.clear()

    def cut(self, rng: Random, keep: float) -> dict[str, Node]:
        if rng.random() < 0.5:
            happened = self.changes[: _some(rng, keep, len(self.changes))]
        else:
            happened = [change for change in self.changes if rng.random() < keep]
        names = dict(self.synced)
        for change in happened:
            _rename(names, change)
        return names


Node = File | Directory


def _some(rng: Random, keep: float, count: int) -> int:
    """How many of `count` changes, from the first on, have happened."""
    return count if rng.random() < keep else rng.randrange(count + 1) if keep else 0


def _changed(content: bytes, changes: list[tuple[int, bytes | None]]) -> bytearray:
    result = bytearray(content)
    for at, data in changes:
        if data is None:
            del result[at:]
            result.extend(bytes(at - len(result)))
        else:
            result.extend(bytes(max(0, at - len(result))))
            result[at : at + len(data)] = data
    return result


def _rename(names: dict[str, Node], change: Mapping[str, Node | None]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class Disk:
    """The root of a trace, as the running system has it and as the disk may."""

    def __init__(self) -> None:
        self.marks: list[bytes] = []
        self._top = Directory()
        self._nodes: dict[int, Node] = {}

    def do(self, op: Op) -> None:
        """The next call of the trace."""
        if op.code == MARK:
            self.marks.append(op.data)
        elif op.code in (CREATE, MKDIR):
            self._add(op)
        elif op.code == FOUND:
            self._nodes[op.inode] = self._node(op.path)
        elif op.code in (WRITE, TRUNCATE):
            file = self._nodes[op.inode]
            assert isinstance(file, File)
            file.changes.append((op.at, op.data if op.code == WRITE else None))
        elif op.code == SYNC:
            self._nodes[op.inode].sync()
        elif op.code == REMOVE:
            directory, name = self._place(op.path)
            directory.change({name: None})
        else:
            assert op.code in (RENAME, LINK), op
            self._move(op)

    def _add(self, op: Op) -> None:
        node = self._nodes[op.inode] = File() if op.code == CREATE else Directory()
        if op.path == ".":
            assert isinstance(node, Directory)
            self._top = node
        else:
            directory, name = self._place(op.path)
            directory.change({name: node})

    def _move(self, op: Op) -> None:
        old, name = self._place(op.path)
        new, other = self._place(op.other)
        node = old.names[name]
        if op.code == LINK:
            new.change({other: node})
        elif old is new:
            old.change({name: None, other: node})
        else:
            raise ValueError(f"{op}: from one directory to another is two changes, not modelled")

    def _place(self, path: str) -> tuple[Directory, str]:
        """The directory that `path` lies in, and its name there."""
        parent, name = os.path.split(path)
        directory = self._node(parent)
        assert isinstance(directory, Directory)
        return directory, name

    def _node(self, path: str) -> Node:
        node: Node = self._top
        for name in PurePath(path).parts:
            assert isinstance(node, Directory)
            node = node.names[name]
        return node

    def running(self) -> Tree:
        """As the running system has it: what is left when no power was cut."""
        return _tree(self._top, lambda d: d.names, lambda f: bytes(_changed(f.synced, f.changes)))

    def cut(self, rng: Random) -> Tree:
        """One that a power cut now could leave. At one time nothing lasts that was not synced, at
        another nearly everything; and some things fare otherwise than the rest."""
        likely = rng.choice((0.0, 0.1, 0.5, 0.9))
        contents: dict[File, bytes] = {}  # of a file with two names both are the same

        def keep() -> float:
            return 1 - likely if rng.random() < 0.2 else likely

        def content(file: File) -> bytes:
            if file not in contents:
                contents[file] = file.cut(rng, keep())
            return contents[file]

        return _tree(self._top, lambda directory: directory.cut(rng, keep()), content)


def _tree(
    directory: Directory,
    names: Callable[[Directory], Mapping[str, Node]],
    content: Callable[[File], bytes],
) -> Tree:
    return {
        name: content(node) if isinstance(node, File) else _tree(node, names, content)
        for name, node in names(directory).items()
    }


def moments(ops: list[Op], rng: Random, count: int) -> Iterator[tuple[int, Disk]]:
    """The disk at `count` moments of a trace, in order, each after so many of its calls. A moment
    that is drawn twice comes twice. A disk is good until the next one is asked for."""
    chosen = sorted(rng.randrange(begin(ops), len(ops) + 1) for _ in range(count))
    disk = Disk()
    done = 0
    for at in chosen:
        for op in ops[done:at]:
            disk.do(op)
        done = at
        yield at, disk


def write_tree(tree: Tree, path: Path) -> None:
    """Lay a tree out as the new directory `path`."""
    path.mkdir()
    for name, content in tree.items():
        if isinstance(content, bytes):
            (path / name).write_bytes(content)
        else:
            write_tree(content, path / name)


def read_tree(path: Path) -> Tree:
    """What lies in directory `path`, but SQLite's shared memory, which is not recorded."""
    return {
        child.name: read_tree(child) if child.is_dir() else child.read_bytes()
        for child in path.iterdir()
        if not child.name.endswith("-shm")
    }
