"""What kind of cluster a checkpoint is of: a small file beside it, which later starts must fit.

Idea: a checkpoint holds rows, and the log does not say what they were written for. A cluster that
takes directed edges for undirected ones, names for ids, or another shard's rows for its own, would
run and answer wrongly. So the first start writes down what it is, before the first batch, and every
other one is compared with that.

    <checkpoint>/shard-0003/cluster.json        or …/out/cluster.json and …/in/cluster.json
    <keep>/shard-0003/cluster.json              the same, for whoever begins with a kept checkpoint
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from lpma.file.atomic import atomic_write, make_directory

from ..errors import CheckpointError
from ..state.directory import has_checkpoint
from .checkpoint_mirror import place_of
from .spec import ShardSpec, folder_of

FILE = "cluster.json"
_PLACES = (FILE, f"out/{FILE}")  # of a shard: with one pipeline, with two


@dataclass(frozen=True)
class ClusterManifest:
    """What all shards of a graph agree on, for as long as their checkpoints last."""

    shards: int
    topic: str
    directed: bool = True
    predecessors: bool = False
    names: bool = False

    @classmethod
    def of(cls, spec: ShardSpec) -> ClusterManifest:
        return cls(spec.shards, spec.topic, spec.directed, spec.predecessors, spec.names)

    def __str__(self) -> str:
        edges = "directed" if self.directed else "undirected"
        edges += " with predecessors" * self.predecessors
        vertices = "with names" if self.names else "with ids"
        shards = "1 shard" if self.shards == 1 else f"{self.shards} shards"
        return f"{shards} of {self.topic!r}, {edges}, {vertices}"

    def check(self, found: bytes, where: object) -> None:
        """Raise CheckpointError unless `found`, the content of a file, is this kind."""
        try:
            other = ClusterManifest(**json.loads(found))
        except (ValueError, TypeError):
            raise CheckpointError(
                f"{where}: is damaged: remove it if you know that this is a cluster of {self}"
            ) from None
        if other != self:
            raise CheckpointError(
                f"{where}: this is the state of {other}, not of {self}: say the same, or give "
                "another checkpoint directory, and another place to keep copies, and the log is "
                "read from its beginning"
            )

    def encoded(self) -> bytes:
        """What a file holds."""
        return json.dumps(asdict(self)).encode()


def check_directory(checkpoint: str, kind: ClusterManifest) -> None:
    """Raise CheckpointError if what lies in the directory of all shards, as far as it can be seen
    from here, is of another kind."""
    for shard in sorted(Path(checkpoint).glob("shard-*")):
        _check_any((shard / name for name in _PLACES), kind)


def settle(spec: ShardSpec, direction: str) -> None:
    """Compare the kind of this shard with what lies in its directory, or in kept storage if there
    is nothing, and write it down where it is not yet. Raises CheckpointError if they differ."""
    kind, directory = ClusterManifest.of(spec), Path(spec.directory(direction))
    own = Path(spec.checkpoint) / folder_of(spec.number)
    if _check_any((own / name for name in _PLACES), kind):
        if (directory / FILE).exists():
            return
    elif spec.keep is not None and not has_checkpoint(directory):
        place = place_of(spec.keep, spec.number, "")
        there = place.list()
        for name in _PLACES:
            if name in there:
                kind.check(place.read(name), f"{place}/{name}")
        place.write(directory.relative_to(own).joinpath(FILE).as_posix(), kind.encoded())
    try:
        make_directory(directory)
        with atomic_write(directory / FILE) as file:
            file.write(kind.encoded())
    except OSError as error:
        raise CheckpointError(f"{directory}: cannot hold checkpoints: {error}") from error


def _check_any(files: Iterable[Path], kind: ClusterManifest) -> bool:
    """Whether one of these is there. Raises CheckpointError if it is of another kind."""
    found = False
    for path in files:
        try:
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read: {error}") from error
        kind.check(content, path)
        found = True
    return found
