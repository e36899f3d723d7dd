"""Public graphs: where they are looked for, what is noticed about damaged ones."""

from __future__ import annotations

import bz2
import gzip
import io
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest import datasets
from ingest.datasets import DatasetError, download
from ingest.datasets.catalog import CATALOG, Dataset
from ingest.datasets.download import convert, numbered
from tests.conftest import NO_DATA, missing

SNAP_TEXT = b"# Directed graph\n# FromNodeId\tToNodeId\n30\t1412\n30\t3352\n1412\t30\n3\t3\n"


class Server:
    """A web server on 127.0.0.1 for bodies by path; `cut` paths end before their stated length."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.cut: set[str] = set()
        self.asked: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                body = server.bodies.get(self.path)
                if body is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if self.path in server.cut else body)

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}{path}"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("LPMA_DATA", raising=False)
    monkeypatch.setenv("LPMA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def votes(server: Server, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """wiki-Vote, as far as this test's server knows."""
    server.bodies["/wiki-Vote.txt.gz"] = gzip.compress(SNAP_TEXT)
    dataset = replace(CATALOG["wiki-Vote"], url=server.url("/wiki-Vote.txt.gz"))
    monkeypatch.setitem(CATALOG, "wiki-Vote", dataset)
    return dataset


def test_download_is_kept_and_not_asked_for_again(
    server: Server, votes: Dataset, cache: Path
) -> None:
    told: list[tuple[str, int, int | None]] = []
    graph = datasets.load("wiki-Vote", progress=lambda *state: told.append(state))
    assert graph.src.tolist() == [0, 0, 1, 3]  # 30 1412 3352 3, by first appearance
    assert graph.dst.tolist() == [1, 2, 0, 3]
    assert graph.directed
    assert graph.time is None
    assert graph.num_rows == 4
    body = len(server.bodies["/wiki-Vote.txt.gz"])
    assert told[0] == ("download wiki-Vote.txt.gz", body, body)
    assert sorted(p.name for p in cache.iterdir()) == [
        "wiki-Vote.npz",
        "wiki-Vote.npz.sha256",
        "wiki-Vote.txt.gz.sha256",
    ]
    again = datasets.load("wiki-Vote")
    assert np.array_equal(again.src, graph.src)
    assert server.asked == ["/wiki-Vote.txt.gz"]


def test_another_body_than_the_first_is_refused(
    server: Server, votes: Dataset, cache: Path
) -> None:
    datasets.load("wiki-Vote")
    (cache / "wiki-Vote.npz").unlink()
    server.bodies["/wiki-Vote.txt.gz"] = gzip.compress(b"1 2\n")
    with pytest.raises(DatasetError, match="SHA-256"):
        datasets.load("wiki-Vote")
    assert not (cache / "wiki-Vote.npz").exists()
    assert not (cache / "wiki-Vote.txt.gz").exists()
    (cache / "wiki-Vote.txt.gz.sha256").unlink()
    assert len(datasets.load("wiki-Vote")) == 1  # trusted anew


def test_a_truncated_body_leaves_nothing(server: Server, votes: Dataset, cache: Path) -> None:
    server.cut.add("/wiki-Vote.txt.gz")
    with pytest.raises(DatasetError, match=r"cut off|cannot be fetched"):
        datasets.load("wiki-Vote")
    assert list(cache.iterdir()) == []
    server.cut.clear()
    assert len(datasets.load("wiki-Vote")) == 4


def test_damaged_contents_are_refused_and_forgotten(
    server: Server, votes: Dataset, cache: Path
) -> None:
    whole = server.bodies["/wiki-Vote.txt.gz"]
    for body, said in (
        (whole[:-9], "cannot be read"),
        (gzip.compress(SNAP_TEXT + b"5\tx\n"), "'5\\\\tx'"),
        (gzip.compress(b"# nothing\n"), "no edge"),
        (b"<html>moved</html>", "cannot be read"),
    ):
        server.bodies["/wiki-Vote.txt.gz"] = body
        with pytest.raises(DatasetError, match=said):
            datasets.load("wiki-Vote")
        assert [p.name for p in cache.iterdir()] == ["wiki-Vote.txt.gz.sha256"]
        (cache / "wiki-Vote.txt.gz.sha256").unlink()


def test_what_the_network_says(server: Server, votes: Dataset, cache: Path) -> None:
    del server.bodies["/wiki-Vote.txt.gz"]
    with pytest.raises(DatasetError, match="404"):
        datasets.load("wiki-Vote")
    with pytest.raises(DatasetError, match="allow the download"):
        datasets.load("wiki-Vote", download=False)
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(DatasetError, match="cannot be fetched"):
        datasets.load("wiki-Vote")
    with pytest.raises(DatasetError, match="only http"):
        download.download("file:///etc/hostname", cache / "x")


def test_a_changed_file_in_the_cache_is_noticed(
    server: Server, votes: Dataset, cache: Path
) -> None:
    datasets.load("wiki-Vote")
    np.savez(cache / "wiki-Vote.npz", src=np.array([0]), dst=np.array([1]))
    with pytest.raises(DatasetError, match="recorded at first use"):
        datasets.load("wiki-Vote")
    assert len(datasets.load("wiki-Vote", verify=False)) == 1


def test_the_data_directory_comes_first(
    tmp_path: Path, votes: Dataset, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    datasets.load("wiki-Vote")
    monkeypatch.setenv("LPMA_DATA", str(data))
    assert datasets.find("wiki-Vote") == cache / "wiki-Vote.npz"
    np.savez(data / "wiki-Vote.npz", src=np.array([7]), dst=np.array([9]))
    assert datasets.find("wiki-Vote") == data / "wiki-Vote.npz"
    with pytest.raises(DatasetError, match="the reference's is 7c1266a678d2c167"):
        datasets.load("wiki-Vote")
    assert datasets.load("wiki-Vote", verify=False).src.tolist() == [7]


def test_unknown_names_and_graphs_that_cannot_be_downloaded(cache: Path) -> None:
    with pytest.raises(DatasetError, match=r"did you mean .*wiki-Vote"):
        datasets.load("vote")
    with pytest.raises(DatasetError, match="lists them"):
        datasets.load("nowhere")
    for name in ("uk-2002", "dblp-2010", "bip-gowalla"):
        with pytest.raises(DatasetError, match=f"put {name}.npz"):
            datasets.load(name)
    assert not cache.exists() or not list(cache.iterdir())


def _raw(tmp_path: Path, name: str, body: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(body)
    return path


def test_formats(tmp_path: Path) -> None:
    road = _raw(
        tmp_path, "x.gr.gz", gzip.compress(b"c roads\np sp 3 3\na 1 2 803\na 2 1 803\na 3 1 7\n")
    )
    arrays = convert(CATALOG["road-NY"], road)
    assert arrays["src"].tolist() == [0, 1, 2]
    assert arrays["dst"].tolist() == [1, 0, 0]
    assert arrays["w"].tolist() == [803, 803, 7]

    text = b"% bip unweighted\n% 3 2 2\n1 1\n2 1\n1 2\n"
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, body in (("women/README", b"1 x"), ("women/out.women", text)):
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    konect = _raw(tmp_path, "x.tar.bz2", bz2.compress(content.getvalue()))
    arrays = convert(CATALOG["bip-southern-women"], konect)
    assert (arrays["src"].tolist(), arrays["dst"].tolist()) == ([0, 1, 0], [0, 0, 1])
    with pytest.raises(DatasetError, match="cannot be read"):
        convert(CATALOG["bip-southern-women"], road)

    trust = _raw(tmp_path, "x.csv.gz", gzip.compress(b"6,2,4,1289241911.7\n6,5,-10,1289241900.5\n"))
    arrays = convert(CATALOG["soc-sign-bitcoinotc"], trust)
    assert arrays["t"].tolist() == [1289241900, 1289241911]  # sorted, the fraction cut
    assert arrays["w"].tolist() == [-10, 4]
    assert arrays["dst"].tolist() == [1, 2]

    edits = _raw(
        tmp_path, "x.csv", b"user_id,item_id,timestamp,state_label,features\n4,4,0.0,0,0.1,0.2\n"
    )
    arrays = convert(CATALOG["bip-jodie-wikipedia"], edits)
    assert {name: column.tolist() for name, column in arrays.items()} == {
        "src": [0],
        "dst": [0],
        "t": [0],
    }


def test_numbered_by_first_appearance() -> None:
    ids = np.array([30, 7, 30, 0, 7, 2**31], np.uint32)
    assert numbered(ids).tolist() == [0, 1, 0, 2, 1, 3]


def test_shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LPMA_DATA", str(tmp_path))
    both: dict[str, Any] = {"src": np.array([0, 1, 2, 2, 1]), "dst": np.array([1, 0, 2, 1, 2])}
    np.savez(tmp_path / "roadNet-CA.npz", **both, w=np.arange(5))
    graph = datasets.load("roadNet-CA")
    assert not graph.directed
    assert (graph.src.tolist(), graph.dst.tolist()) == ([0, 2, 2], [1, 2, 1])
    assert graph.weight is not None
    assert graph.weight.tolist() == [0, 2, 3]
    np.savez(tmp_path / "konect-actor-movie.npz", **both)
    graph = datasets.load("konect-actor-movie")
    assert graph.dst.tolist() == [4, 3, 5, 4, 5]
    assert graph.columns().weight is None
    several: tuple[dict[str, Any], ...] = (
        {"src": both["src"]},
        {"src": both["src"], "dst": both["dst"][:2]},
        {"src": -both["src"], "dst": both["dst"]},
        {"src": both["src"] * 0.5, "dst": both["dst"]},
    )
    for bad in several:
        np.savez(tmp_path / "roadNet-CA.npz", **bad)
        with pytest.raises(DatasetError):
            datasets.load("roadNet-CA")
    (tmp_path / "roadNet-CA.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(DatasetError):
        datasets.load("roadNet-CA")


def test_the_catalog_is_whole() -> None:
    for name, dataset in CATALOG.items():
        assert dataset.name == name
        assert dataset.url.startswith(("http://", "https://"))
        assert dataset.citation
        assert dataset.edges > 0
        assert dataset.shape in ("directed", "undirected", "both ways", "bipartite")
        assert dataset.layout in ("file", "konect", "npz")
        assert dataset.sha256 is None or len(dataset.sha256) == 64
    files = [d.url for d in CATALOG.values() if d.layout != "npz"]
    assert len(set(files)) == len(files)


@pytest.mark.parametrize("name", [d.name for d in CATALOG.values() if d.sha256])
def test_reference_graphs(name: str) -> None:
    directory = datasets.data_directory()
    if directory is None:
        missing("data", NO_DATA)
    if not (directory / f"{name}.npz").is_file():
        missing("data", f"{directory}/{name}.npz is not there")
    graph = datasets.load(name, download=False)
    assert len(graph) > 0
    assert graph.src.dtype == graph.dst.dtype == np.uint32
    if graph.time is not None:
        assert (np.diff(graph.time) >= 0).all()
    if name == "ca-HepTh":
        assert len(graph) == 25_973 + 25  # each edge once, and the loops
    if name == "bip-southern-women":
        assert graph.num_rows == 32
