"""`names=True` says that vertices go by names; `ids="mapped"` still says so, and warns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ingest
import lpma
from ingest.settings import RecordSettings
from lpma import Kind
from tests.support.command_line import run


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ingest.SqliteLog]:
    with ingest.SqliteLog(tmp_path / "log") as opened:
        opened.create_topic("updates")
        yield opened


def calls(log: ingest.SqliteLog, path: Path) -> dict[str, Callable[..., Any]]:
    """Every call that is told whether vertices go by names; each gives something to compare."""
    row = ingest.encode_row("a", "b", names=True)

    def client(**named: Any) -> bool:
        with ingest.Client(log, **named) as opened:
            return opened._names

    return {
        "encode_updates": lambda **named: ingest.encode_updates(["a"], ["b"], **named),
        "encode_row": lambda **named: ingest.encode_row("a", "b", **named),
        "encode_query": lambda **named: ingest.encode_query("q", Kind.DEGREE, "a", **named),
        "decode_record": lambda **named: ingest.decode_record(row, **named).names is not None,
        "Settings": lambda **named: ingest.Settings(**named),
        "RecordSettings": lambda **named: RecordSettings(**named),
        "FileSource": lambda **named: ingest.FileSource(path, **named).identity(),
        "Client": client,
        "Pipeline": lambda **named: (
            ingest.Pipeline(log, lpma.Graph(device="cpu"), **named).settings.names
        ),
    }


CALLS = ("encode_updates", "encode_row", "encode_query", "decode_record", "Settings",
         "RecordSettings", "FileSource", "Client", "Pipeline")  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_the_old_word_does_the_same_and_warns_where_it_was_written(
    log: ingest.SqliteLog, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "e.csv"
    path.write_text("src,dst\na,b\n")
    call = calls(log, path)[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = call(names=True)
    with pytest.warns(DeprecationWarning, match="say names=True") as warned:
        assert call(ids="mapped") == new
    assert [Path(each.filename) for each in warned] == [Path(__file__)]
    with pytest.raises(ingest.IngestError, match=r"ids is 'text': .* names=True"):
        call(ids="text")
    with pytest.raises(ingest.IngestError, match="contradict"):
        call(names=True, ids="dense")


def test_a_checkpoint_keeps_the_words_of_older_releases() -> None:
    for named, word in ((True, "mapped"), (False, "dense")):
        kept = RecordSettings(names=named).to_json()
        assert kept == {"records": "msgpack", "ids": word, "late": "apply", "max_lateness": 0}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert RecordSettings.from_json(kept) == RecordSettings(names=named)


def test_a_resume_takes_the_old_word_too(tmp_path: Path) -> None:
    with ingest.SqliteLog(tmp_path / "log") as log:
        log.produce("updates", ingest.encode_row("a", "b", names=True))
        graph = lpma.Graph(device="cpu", names=True)
        with ingest.Pipeline(log, graph, tmp_path / "c") as pipeline:
            pipeline.run("end")
        with pytest.warns(DeprecationWarning, match="say names=True"):
            resumed = ingest.Pipeline.resume(tmp_path / "c", log, ids="mapped")
        assert isinstance(resumed.graph, lpma.Graph)
        assert resumed.graph.has_edge("a", "b")
        resumed.close()
        with (
            pytest.warns(DeprecationWarning, match="say names=False"),
            pytest.raises(ingest.PipelineError, match=r"names is False, but .* with True"),
        ):
            ingest.Pipeline.resume(tmp_path / "c", log, ids="dense")


def test_the_old_option_of_the_command_line_says_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("src,dst\n1,2\n")
    old = run("load", path, tmp_path / "old.lpma", "--ids", "mapped", "--json")
    new = run("load", path, tmp_path / "new.lpma", "--names", "--json")
    assert old.stderr.count("say --names") == 1
    assert "--ids" not in new.stderr
    for name in ("old.lpma", "new.lpma"):
        names = lpma.Graph.load(tmp_path / name, "cpu").names
        assert names is not None
        assert len(names) == 2
