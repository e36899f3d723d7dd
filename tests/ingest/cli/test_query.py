"""`lpma query`: a store, a checkpoint and a running pipeline answer alike."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any, cast

import pytest

import ingest
import lpma
from ingest import Reply
from ingest.cli._answering import Live
from ingest.errors import QueryTimeout
from ingest.queries.base import Ask
from tests.support.command_line import ROOT, command_line, document, run
from tests.support.waiting import HANGS_S


def test_queries(store: Path) -> None:
    def results(*arguments: object) -> Any:
        found = document("query", *arguments)
        assert found["version"] == 1
        return found["results"]

    (edge,) = results("edge", store, 0, 1)
    assert edge["found"]
    assert edge["weight"] == 2
    assert results("edge", store, 1, 0)[0] == {
        "src": 1, "dst": 0, "found": False, "weight": None, "time": None
    }  # fmt: skip
    found = results("successors", store, 0, 3, 9)
    assert [r["ids"] for r in found] == [[1, 2], [3], []]
    assert [r["present"] for r in found] == [True, True, False]
    assert results("successors", store, 0)[0]["weight"] == [2, 1]
    assert [r["ids"] for r in results("predecessors", store, 2)] == [[0, 1]]
    assert results("hops", store, 1, "-k", 1) == [{"vertex": 1, "ids": [2], "present": True}]
    assert results("hops", store, 1, "--steps", 3) == [
        {"vertex": 1, "ids": [0, 1, 2], "present": True}
    ]
    assert results("degree", store, 0, 2) == [
        {"vertex": 0, "degree": 2, "present": True}, {"vertex": 2, "degree": 1, "present": True}
    ]  # fmt: skip
    assert [r["found"] for r in results("vertex", store, 3, 4)] == [True, False]


def test_queries_for_people(store: Path) -> None:
    assert "present, weight 2" in run("query", "edge", store, 0, 1).stdout
    assert "absent" in run("query", "edge", store, 1, 0).stdout
    text = run("query", "successors", store, 0, "--limit", 1).stdout
    assert text.splitlines()[0] == "successors of 0: 2"
    assert "1 more" in text
    assert run("query", "degree", store, 0).stdout == "degree 0: 2\n"
    assert run("query", "degree", store, 3, 9).stdout == (
        "degree 3: 1\ndegree 9: 0 (there is no such vertex)\n"
    )
    for query, said in (("successors", "successors"), ("hops", "2-hop")):
        told = run("query", query, store, 0, 9).stdout.splitlines()[-1]
        assert told == f"{said} of 9: 0 (there is no such vertex)"
    assert run("query", "vertex", store, 3, 4).stdout == "vertex 3: present\nvertex 4: absent\n"


def test_queries_to_a_running_pipeline(tmp_path: Path) -> None:
    path = tmp_path / "log"
    source = ingest.SqliteLog(path)
    source.produce(ingest.types.UPDATES, ingest.encode_updates([0] * 9 + [1], [*range(9), 2]))
    graph = lpma.Graph(device="cpu", predecessors=True)
    pipeline = ingest.Pipeline(source, graph, max_reply_rows=4, batch_interval=0.02)
    thread = threading.Thread(target=pipeline.run)
    thread.start()
    try:
        found = document("query", "successors", path, 0, 1, 7)
        assert [r["ids"] for r in found["results"]] == [list(range(9)), [2], []]
        assert found["version"] >= 5, "of the last of five replies"
        assert document("query", "edge", path, 1, 2)["results"][0]["found"]
        assert document("query", "predecessors", path, 2)["results"][0]["ids"] == [0, 1]
        assert len(document("query", "hops", path, 0)["results"][0]["ids"]) == 9
        assert document("query", "degree", path, 0, 5)["results"][0]["degree"] == 9
        assert run("query", "vertex", path, 3, 44).stdout.endswith("vertex 44: absent\n")
        refused = run("query", "hops", path, 0, "-k", 3, status=1)
        assert "refused (hops)" in refused.stderr
    finally:
        pipeline.stop()
        thread.join()
    nowhere = run("query", "degree", "kafka://127.0.0.1:1", 0, status=1)
    assert "no Kafka could be reached" in nowhere.stderr


def test_a_vertex_below_zero_comes_after_two_dashes(tmp_path: Path) -> None:
    graph = lpma.Graph(names=True, device="cpu")
    graph.insert(-57, "b")
    graph.save(tmp_path / "g.lpma")
    told = run("query", "successors", tmp_path / "g.lpma", -57, status=2).stderr
    assert "comes after --: -- -57" in " ".join(told.replace("│", "").split())
    answer = run("query", "successors", "--json", tmp_path / "g.lpma", "--", -57).stdout
    assert json.loads(answer)["results"][0]["ids"] == ["b"]


def test_a_terminal_that_cannot_show_a_name(tmp_path: Path) -> None:
    graph = lpma.Graph(names=True, device="cpu")
    graph.insert("ā", "→")
    graph.save(tmp_path / "g.lpma")
    for words in (["run", "core"], ["query", "successors"]):
        vertices = ["ā"] * (words[0] == "query")
        done = subprocess.run(
            command_line(*words, tmp_path / "g.lpma", *vertices), cwd=ROOT, timeout=HANGS_S,
            env={**os.environ, "PYTHONIOENCODING": "cp1252"}, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert rb"\u0101" in done.stdout


class Unread:
    """A client whose queries nobody reads."""

    def ask_many(self, queries: list[Ask]) -> list[Reply]:
        raise QueryTimeout("1 of 1 queries had no reply within 10 s", [None])


def test_a_time_out_says_that_no_stream_says_what_it_reads() -> None:
    live: Any = Live(cast(Any, Unread()), "asked")
    told = "no stream says in its topics what it reads.* reads queries of the topic asked where"
    with pytest.raises(QueryTimeout, match=rf"no reply within 10 s \({told}.*--topic asked"):
        live.edge(1, 2)
    with pytest.raises(QueryTimeout, match="and names where it is given --names"):
        live.edge("a", "b")
