"""What a registry answered is kept, counts by stamps, and is asked for again if it is damaged."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest import CheckpointError, RecordError, SchemaRegistry, SourceError
from ingest.errors import AwayError
from ingest.registry.schemas import ASK_AGAIN_MS, DIRECTORY, Schemas
from ingest.sources.kafka import clock
from tests.support.events import events_named
from tests.support.schema_registry import Registry, served
from tests.support.ticks import Ticks
from tests.support.waiting import wait_for


@pytest.fixture
def registry() -> Iterator[Registry]:
    with served() as found:
        yield found


def schemas(registry: Registry | None, path: Path | None, patience: float = 60.0) -> Schemas:
    url = None if registry is None else registry.url
    return Schemas(url and SchemaRegistry(url, patience=patience), path)  # type: ignore[arg-type]


def verdict(found: Schemas, id: int, stamp: int) -> str:
    found.wait([id], stamp)
    try:
        return found.of(id, stamp).text
    except RecordError as error:
        return {"unserved": "none"}[error.kind]


def test_a_schema_is_asked_for_once_and_kept(registry: Registry, tmp_path: Path) -> None:
    id = registry.add('"int"', references=[])
    found = schemas(registry, tmp_path)
    assert [verdict(found, id, stamp) for stamp in (7, 8, 0)] == ['"int"'] * 3
    assert registry.asked == [f"/schemas/ids/{id}"]
    assert verdict(schemas(None, tmp_path), id, 3) == '"int"'
    with pytest.raises(SourceError, match="schema 99 is not among those that are kept"):
        schemas(None, tmp_path).wait([99], 3)


def test_one_that_is_missing_counts_from_when_it_is_found(
    registry: Registry, tmp_path: Path
) -> None:
    found, first = schemas(registry, tmp_path), 1_700_000_000_000
    assert verdict(found, 1, first) == "none"
    registry.add('"int"')
    soon = first + ASK_AGAIN_MS - 1
    assert verdict(found, 1, soon) == "none"  # as it was said
    assert len(registry.asked) == 1
    later = first + ASK_AGAIN_MS
    assert verdict(found, 1, later) == '"int"'
    # Whoever replays this comes to the same, though the registry knows the schema now.
    again = schemas(registry, tmp_path)
    stamps = (first, soon, later - 1, later, later + 5)
    assert [verdict(again, 1, stamp) for stamp in stamps] == ["none"] * 3 + ['"int"'] * 2
    assert len(registry.asked) == 2


def test_one_that_stays_missing_is_asked_for_now_and_then(
    registry: Registry, tmp_path: Path
) -> None:
    found = schemas(registry, tmp_path)
    for stamp in range(0, 3 * ASK_AGAIN_MS, ASK_AGAIN_MS // 10):
        assert verdict(found, 1, stamp) == "none"
    assert len(registry.asked) == 3
    assert len(list((tmp_path / DIRECTORY).iterdir())) == 1


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.registry.schemas.MOST_UNKNOWN", FEW)


FEW = 3


@pytest.mark.usefixtures("few")
def test_a_flood_of_unknown_ids_is_asked_for_a_few_times_and_told_once(
    registry: Registry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    id = registry.add('"int"', references=[])
    found = schemas(registry, tmp_path)
    assert verdict(found, id, 0) == '"int"'
    late = registry.add('"long"', references=[])
    for stamp in range(1000):  # within ASK_AGAIN_MS
        assert verdict(found, 10**6 + stamp, stamp) == "none"
        assert verdict(found, id, stamp) == '"int"'
    assert len(registry.asked) == 1 + FEW + 1
    assert verdict(found, late, 1000) == "none"
    with pytest.raises(RecordError, match="not asked for"):
        found.of(late, 1000)
    assert len(events_named(caplog, "schemas unknown")) == 1
    files = sorted(path.name for path in (tmp_path / DIRECTORY).iterdir())
    assert files == [f"{id}.from-0.json", f"others.none-until-{FEW + ASK_AGAIN_MS}.json"]
    after = FEW + ASK_AGAIN_MS
    assert verdict(found, late, after) == '"long"'
    again = schemas(None, tmp_path)  # all is decided without a registry
    assert [verdict(again, late, stamp) for stamp in (1000, after - 1, after)] == [
        "none", "none", '"long"'
    ]  # fmt: skip


@pytest.mark.usefixtures("few")
def test_ids_that_were_unknown_long_ago_are_no_flood(
    registry: Registry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = schemas(registry, tmp_path)
    for at in range(20):
        stamp = at * ASK_AGAIN_MS
        assert verdict(found, 10**6 + at, stamp) == "none"
        id = registry.add(f'{{"type": "fixed", "name": "f", "size": {at + 1}}}', references=[])
        assert verdict(found, id, stamp) != "none"
    assert not events_named(caplog, "schemas unknown")
    unknown = [p for p in (tmp_path / DIRECTORY).iterdir() if "none-until" in p.name]
    assert len(unknown) <= FEW + 1


steps = st.lists(
    st.tuples(st.integers(1, 9), st.sampled_from([0, 1, ASK_AGAIN_MS // 3, ASK_AGAIN_MS]),
              st.sampled_from(["read"] * 6 + ["register", "restart", "damage"])),
    max_size=40,
)  # fmt: skip


@given(steps=steps)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.usefixtures("few")
def test_a_replay_decides_alike(steps: list[tuple[int, int, str]]) -> None:
    """However ids come, schemas are registered meanwhile, files are damaged and the process is
    restarted; and no more is asked for and kept than may be."""
    with served() as registry, tempfile.TemporaryDirectory() as folder:
        path, stamp = Path(folder), 1
        found, seen = schemas(registry, path), []
        for id, later, what in steps:
            stamp += later
            if what == "register" and id not in registry.schemas:
                registry.add('"int"', id=id)
            elif what == "restart":
                found = schemas(registry, path)
            elif what == "damage":
                for file in (path / DIRECTORY).glob(f"{id}.from-*"):
                    file.write_bytes(b"")
                found = schemas(registry, path)
            else:
                seen.append((id, stamp, verdict(found, id, stamp)))
        replayed = schemas(registry, path)
        assert [(id, at, verdict(replayed, id, at)) for id, at, _ in seen] == seen
        if (path / DIRECTORY).exists():
            kept = [file.name for file in (path / DIRECTORY).iterdir()]
            assert sum("none-until" in name for name in kept) <= FEW + 1


def test_what_is_kept_and_damaged_is_asked_for_again(registry: Registry, tmp_path: Path) -> None:
    """Each byte of a file in turn, and each length: the schema, or none without a registry; and it
    counts from the same stamp as before."""
    first, later = 1000, 1000 + ASK_AGAIN_MS
    origin = tmp_path / "origin"
    found = schemas(registry, origin)
    assert verdict(found, 1, first) == "none"
    registry.add('"int"')
    assert verdict(found, 1, later) == '"int"'
    (name,) = [p.name for p in (origin / DIRECTORY).iterdir() if ".from-" in p.name]
    whole = (origin / DIRECTORY / name).read_bytes()
    spoilt = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    spoilt += [whole[:at] for at in range(len(whole))]
    copy = tmp_path / "copy"
    for number, data in enumerate(spoilt):
        shutil.copytree(origin, copy)
        (copy / DIRECTORY / name).write_bytes(data)
        if number % 20 == 0:  # asking takes a while
            again = schemas(registry, copy)
            assert [verdict(again, 1, stamp) for stamp in (first, later)] == ["none", '"int"']
            assert (copy / DIRECTORY / name).read_bytes() == whole
        else:
            with pytest.raises(SourceError, match="not among those that are kept"):
                schemas(None, copy).wait([1], later)
        shutil.rmtree(copy)


def test_a_registry_that_is_away_is_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served() as registry:
        port = int(registry.url.rpartition(":")[2])
        id = registry.add('"int"')
    found = schemas(registry, tmp_path)
    said = str(wait_for(lambda: found.ready([id], 0, 0.05) or found.trouble()))
    assert "schemas are not read for" in said
    assert "refused" in said
    (event,) = events_named(caplog, "outage")
    assert event.fields["bootstrap"] == registry.url
    assert event.fields["service"] == "the schema registry"
    with served(registry, port=port):
        found.wait([id], 0)
    assert found.of(id, 0).text == '"int"'
    assert found.trouble() is None
    assert len(events_named(caplog, "outage over")) == 1


def test_patience_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as registry:
        pass
    ticks = Ticks(1.0)
    monkeypatch.setattr(clock, "now", ticks.monotonic)
    monkeypatch.setattr(clock, "sleep", ticks.sleep)
    found = schemas(registry, tmp_path, patience=30)
    why = r"no schema 7 for 3\d s: the schema registry: .*refused\S*\. Nothing is lost: start "
    with pytest.raises(AwayError, match=why):
        found.wait([7], 0)


def test_a_refusal_is_raised(registry: Registry, tmp_path: Path) -> None:
    registry.authorization = "Basic other"
    with pytest.raises(SourceError, match="401"):
        schemas(registry, tmp_path).wait([1], 0)


def test_a_disk_that_refuses_is_told(registry: Registry, tmp_path: Path) -> None:
    id = registry.add('"int"')
    (tmp_path / DIRECTORY).write_bytes(b"")
    with pytest.raises(CheckpointError, match="schemas"):
        schemas(registry, tmp_path).wait([id], 0)


def test_without_a_directory_nothing_is_kept(registry: Registry) -> None:
    id = registry.add('"int"')
    assert verdict(schemas(registry, None), id, 0) == '"int"'
    assert verdict(schemas(registry, None), 99, 0) == "none"
