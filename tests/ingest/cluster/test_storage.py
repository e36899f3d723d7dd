"""Places that checkpoints are kept in: objects appear whole, and go with their manifest first."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest import CheckpointError, Pipeline
from ingest.cluster import storage
from ingest.cluster.checkpoint_mirror import CheckpointMirror, restore
from ingest.cluster.storage import Storage
from ingest.state.checkpoint import MANIFEST
from tests.ingest.cluster.keeping import whole
from tests.support.object_store import ObjectStore, Stopped


@pytest.mark.parametrize("address", ["nowhere://x/y", "s3://", "file://relative"])
def test_an_address_that_is_none(address: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="give a path, or a URI"):
        CheckpointMirror(address, 0, tmp_path)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """A stream that has its own disk begins all the same; one that has nothing does not."""
    (tmp_path / "file").write_text("")
    mirror = CheckpointMirror(str(tmp_path / "file"), 0, tmp_path)
    assert "cannot be written" in (mirror.status.problem or "")
    with pytest.raises(CheckpointError, match="cannot be written"):
        restore(str(tmp_path / "file"), 0, tmp_path / "state")


def test_a_place_that_is_away_at_the_start(
    stream: Pipeline, place: Storage, store: ObjectStore, tmp_path: Path
) -> None:
    def fail(_: str) -> None:
        raise OSError("the bucket is away")

    store.on_call = fail
    mirror = CheckpointMirror(place, 0, tmp_path / "state")
    assert "away" in (mirror.status.problem or "")
    store.on_call = lambda _: None
    mirror.look()
    assert mirror.status.problem is None
    assert whole(store) == [0]
    other = CheckpointMirror(place, 0, tmp_path / "elsewhere")
    mirror.look()
    assert other.status.problem is None


def test_a_uri_is_a_path_too(tmp_path: Path) -> None:
    Storage.of(f"file://{tmp_path}/a").write("b/c", b"1")
    assert Storage.of(str(tmp_path)).list() == {"a/b/c": 1}
    Storage.of(str(tmp_path)).remove("a", "b/c")
    Storage.of(str(tmp_path)).remove("a", "b/c")
    assert Storage.of(str(tmp_path)).list() == {}


def test_large_objects_go_piece_by_piece(
    place: Storage, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "PIECE_BYTES", 10)
    (tmp_path / "file").write_bytes(bytes(range(45)))
    with open(tmp_path / "file", "rb") as file:
        pieces = list(place.copy(file, "a"))
    assert [len(piece) for piece in pieces] == [10, 10, 10, 10, 5]
    assert b"".join(pieces) == bytes(range(45)) == b"".join(place.pieces("a"))


def test_an_object_appears_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "PIECE_BYTES", 10)
    (tmp_path / "file").write_bytes(bytes(range(45)))
    local = Storage.of(str(tmp_path / "kept"))
    with open(tmp_path / "file", "rb") as file:
        copying = local.copy(file, "a/b")
        next(copying)
        assert "a/b" not in local.list()
        list(copying)
    assert local.list() == {"a/b": 45}


def test_a_write_that_fails_leaves_no_object(place: Storage, store: ObjectStore) -> None:
    def fail(name: str) -> None:
        if name == "write":
            raise OSError("no more room")

    store.on_call = fail
    with pytest.raises(CheckpointError, match="no more room"):
        place.write("a", b"1")
    assert store.objects == {}


def test_a_removal_begins_with_the_manifest(place: Storage, store: ObjectStore) -> None:
    for name in ("a", "b", MANIFEST):
        place.write(f"copy/{name}", b"1")
    deleted: list[str] = []

    def stop(name: str) -> None:
        if name == "delete":
            if deleted:
                raise Stopped
            deleted.append(name)

    store.on_call = stop
    with pytest.raises(Stopped):
        place.remove("copy", MANIFEST)
    assert {name.split("/")[-1] for name in store.objects} == {"a", "b"}
