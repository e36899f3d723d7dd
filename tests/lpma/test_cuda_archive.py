"""The archive of kernels compiled beforehand: what is found in it, and for whom; never what is
older than the sources, and never a crash."""

from __future__ import annotations

import importlib
import threading
import warnings
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import algorithms
import lpma
from lpma.cuda import archive, sources
from lpma.cuda.archive import Archive, Binary, kernel_facts, key_of, write
from tests.conftest import missing

KERNEL = '#include "lpma/near.cuh"\n__global__ void f() {}\n'
FILE, OPTIONS = "lpma/kernel.cu", ("-DWIDTH=8",)
PAGERANK = "algorithms/pagerank/pagerank.cu"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of sources: a kernel that includes a header that includes another."""
    root = tmp_path / "tree"
    (root / "lpma").mkdir(parents=True)
    (root / FILE).write_text(KERNEL)
    (root / "lpma/near.cuh").write_text('#include "lpma/far.cuh"\n')
    (root / "lpma/far.cuh").write_text("// far\n")
    for module in (sources, archive):
        monkeypatch.setattr(module, "ROOT", root)
    return root


def written(path: Path, *binaries: Binary) -> Archive:
    write(path, "12.9", [(FILE, OPTIONS, binaries)])
    return Archive(path)


def images(path: Path) -> Archive:
    named = [(70, False), (80, False), (90, False), (90, True)]
    return written(path, *(Binary(n, ptx, f"{n} {ptx}".encode(), {"f<1>": "_f"})
                           for n, ptx in named))  # fmt: skip


@pytest.mark.parametrize(
    "capability, expected",
    [(60, None), (70, "70 False"), (75, "70 False"), (80, "80 False"), (86, "80 False"),
     (90, "90 False"), (100, "90 True"), (121, "90 True")],
)  # fmt: skip
def test_a_device_gets_the_newest_that_runs_on_it(
    tree: Path, tmp_path: Path, capability: int, expected: str | None
) -> None:
    found = images(tmp_path / "kernels.bin").find(FILE, OPTIONS, capability)
    assert (found and found.image.decode()) == expected
    if found:
        assert found.symbols == {"f<1>": "_f"}


@pytest.mark.parametrize("edited", [FILE, "lpma/near.cuh", "lpma/far.cuh"])
def test_nothing_older_than_the_sources_is_found(tree: Path, tmp_path: Path, edited: str) -> None:
    kernels = images(tmp_path / "kernels.bin")
    assert kernels.find(FILE, OPTIONS, 90)
    assert kernels.find(FILE, ("-DWIDTH=9",), 90) is None
    assert kernels.facts()["current"] == kernels.facts()["modules"] == 1
    (tree / edited).write_text((tree / edited).read_text() + "// edited\n")
    assert kernels.find(FILE, OPTIONS, 90) is None
    assert kernels.facts()["current"] == 0


def test_the_key_depends_on_the_instances_and_not_on_the_place(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = key_of(FILE, OPTIONS)
    moved = tree.rename(tmp_path / "moved")
    monkeypatch.setattr(sources, "ROOT", moved)
    assert key_of(FILE, OPTIONS) == before
    (moved / FILE).write_text(f"// Instances: f<1>, f<2>,\n//   f<3>\n{KERNEL}")
    assert sources.instances(FILE) == ("f<1>", "f<2>", "f<3>")
    assert key_of(FILE, OPTIONS) != before


def test_what_doctor_says(tree: Path, tmp_path: Path) -> None:
    path = tmp_path / "kernels.bin"
    assert images(path).facts() == {
        "path": str(path), "modules": 1, "current": 1,
        "architectures": ["sm_70", "sm_80", "sm_90", "compute_90"],
        "compiler": "12.9", "bytes": path.stat().st_size,
    }  # fmt: skip
    none = Archive(tmp_path / "none").facts()
    assert (none["modules"], none["architectures"], none["bytes"]) == (0, [], 0)


def test_doctor_finds_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cache"))
    assert kernel_facts()["cache"] == {"path": str(tmp_path / "cache"), "files": 0, "bytes": 0}
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "a.cubin").write_bytes(b"12345")
    assert kernel_facts()["cache"] == {"path": str(tmp_path / "cache"), "files": 1, "bytes": 5}
    assert set(kernel_facts()["shipped"]) == set(Archive(tmp_path / "none").facts())


def test_damage_is_warned_of_once_and_is_a_miss(tree: Path, tmp_path: Path) -> None:
    """Cut off anywhere, or with any byte changed: what is found is whole, or nothing is."""
    path = tmp_path / "kernels.bin"
    images(path)
    whole = path.read_bytes()
    damaged = [whole[:end] for end in range(len(whole))]
    damaged += [whole[:i] + bytes([whole[i] ^ 0x5A]) + whole[i + 1 :] for i in range(len(whole))]
    for content in damaged:
        path.write_bytes(content)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            kernels = Archive(path)
            found = [kernels.find(FILE, OPTIONS, n) for n in (70, 80, 90, 100)]
        assert len(said) <= 1
        assert all(each is None or each.image in whole_images() for each in found)
        assert said or None not in found
    path.write_bytes(whole)
    assert Archive(path).find(FILE, OPTIONS, 90)


def whole_images() -> set[bytes]:
    return {b"70 False", b"80 False", b"90 False", b"90 True"}


def test_another_program_may_remove_it(tree: Path, tmp_path: Path) -> None:
    path = tmp_path / "kernels.bin"
    kernels = images(path)
    path.unlink()
    with pytest.warns(RuntimeWarning, match="is damaged"):
        assert kernels.find(FILE, OPTIONS, 90) is None
    assert kernels.find(FILE, OPTIONS, 90) is None


# With the compiler ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def build() -> Any:
    try:
        return importlib.import_module("lpma.backend.cuda.launch.build")
    except (ImportError, RuntimeError) as error:
        missing("nvrtc", f"no CuPy with NVRTC: {error}")


@pytest.mark.nightly
def test_everything_is_built(build: Any) -> None:
    """All files, and the store's for the shapes that graphs have as a rule."""
    listed = list(build.prebuilt_kernels())
    root = Path(lpma.__file__).parents[1]
    files = {str(path.relative_to(root)) for room in ("lpma", "algorithms")
             for path in (root / room).rglob("*.cu")}  # fmt: skip
    assert {file for file, _ in listed} == files
    assert len(set(listed)) == len(listed)
    options = importlib.import_module("lpma.backend.cuda.launch.options").options_for
    for shape in ((32, 4, True), (32, 8, True), (32, 0, False)):
        assert ("lpma/backend/cuda/kernels/windows.cu", options(*shape)) in listed


@pytest.mark.nightly
@pytest.mark.parametrize("ptx", [False, True])
def test_instances_have_their_symbols(build: Any, tmp_path: Path, ptx: bool) -> None:
    write(tmp_path / "a", "12.9", [(PAGERANK, (), [build.compiled(PAGERANK, (), 90, ptx)])])
    found = Archive(tmp_path / "a").find(PAGERANK, (), 90)
    assert found is not None
    assert set(found.symbols) == set(sources.instances(PAGERANK))
    for symbol in (*found.symbols.values(), "sum_rows"):
        assert symbol.encode() in found.image


@pytest.mark.nightly
def test_a_broken_source_says_so(build: Any, tree: Path) -> None:
    (tree / FILE).write_text("nothing")
    with pytest.raises(RuntimeError, match=r"kernel\.cu"):
        build.compiled(FILE, (), 90)


@pytest.mark.nightly
def test_modules_are_loaded_once(monkeypatch: pytest.MonkeyPatch, build: Any) -> None:
    """By whichever thread comes first; an error is the asker's, and the next asker tries again."""
    modules = importlib.import_module("lpma.cuda.modules")
    began, go_on, loads = threading.Event(), threading.Event(), []

    def load(*of: Any) -> tuple[Any, dict[str, str]]:
        loads.append(of)
        began.set()
        assert go_on.wait(10)
        if len(loads) == 1:
            raise RuntimeError("no memory")
        return "loaded", {}

    monkeypatch.setattr(modules, "_from_archive", lambda *of: None)
    monkeypatch.setattr(modules, "_from_compiler", load)
    module = modules._Module(FILE, OPTIONS, "")

    def ask_first() -> None:
        with pytest.raises(RuntimeError, match="no memory"):
            module.load()

    first = threading.Thread(target=ask_first)
    first.start()
    assert began.wait(10)
    assert module.load(wait=False) is None
    go_on.set()
    first.join()
    assert module.load() == module.load() == ("loaded", {})
    assert loads == [(FILE, OPTIONS, "")] * 2


@pytest.mark.nightly
def test_files_are_loaded_in_the_background(monkeypatch: pytest.MonkeyPatch, build: Any) -> None:
    """All of them, in their order and by as many threads as there are processors to spare; one that
    fails does not keep the others from being made."""
    modules = importlib.import_module("lpma.cuda.modules")
    cuda = SimpleNamespace(
        runtime=SimpleNamespace(getDevice=lambda: 3), Device=lambda number: nullcontext(number)
    )
    monkeypatch.setattr(modules, "cupy", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(modules, "processors", lambda: 2)
    monkeypatch.setattr(modules, "shipped", lambda: None)
    made: list[str] = []

    class Loaded:
        def __init__(self, device: int, file: str, options: Any, instance: str) -> None:
            assert (device, options, instance) == (3, (), "")
            self.file = file

        def load(self, wait: bool) -> None:
            assert not wait
            made.append(self.file)
            if self.file == "b":
                raise MemoryError

    monkeypatch.setattr(modules, "_module", Loaded)
    modules.begin((file, ()) for file in "abcdefghi")
    for thread in threading.enumerate():
        if thread.name == "lpma-compile":
            thread.join()
    assert "".join(made) == "abcdefghi"


# On a device ------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("ptx", [False, True])
def test_kernels_of_an_archive_do_the_same(
    cupy: Any, build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ptx: bool
) -> None:
    """PageRank's, a cooperative template with barriers: the same ranks to the last bit."""
    r = np.random.default_rng(1)
    g = lpma.Graph(device="cuda")
    g.insert(r.integers(0, 300, 3000), r.integers(0, 300, 3000), r.random(3000))
    compiled = algorithms.pagerank(g.snapshot())
    capability = int(cupy.cuda.Device().compute_capability)
    binary = build.compiled(PAGERANK, (), capability, ptx)
    path = tmp_path / "kernels.bin"
    write(path, "12.9", [(PAGERANK, (), [binary])])
    found: list[str] = []
    with_archive(monkeypatch, path, found)
    archived = algorithms.pagerank(g.snapshot())
    assert np.array_equal(cupy.asnumpy(archived), cupy.asnumpy(compiled))
    assert PAGERANK in found


@pytest.mark.gpu
def test_a_driver_that_takes_no_binary_of_the_archive(
    cupy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capability = int(cupy.cuda.Device().compute_capability)
    symbols = dict.fromkeys(sources.instances(PAGERANK), "_")
    path = tmp_path / "kernels.bin"
    write(path, "12.9", [(PAGERANK, (), [Binary(capability, False, b"nonsense", symbols)])])
    found: list[str] = []
    with_archive(monkeypatch, path, found)
    g = lpma.Graph(device="cuda")
    g.insert([0, 1], [1, 0])
    assert np.allclose(cupy.asnumpy(algorithms.pagerank(g.snapshot())), 0.5)
    assert PAGERANK in found


def with_archive(monkeypatch: pytest.MonkeyPatch, path: Path, found: list[str]) -> None:
    """Have kernels looked for in this archive from now on, and note the files found there."""
    modules = importlib.import_module("lpma.cuda.modules")
    launch = importlib.import_module("lpma.cuda.launch")
    kernels = Archive(path)
    find = kernels.find

    def noting(file: str, options: sources.Options, capability: int) -> Binary | None:
        binary = find(file, options, capability)
        if binary is not None:
            found.append(file)
        return binary

    monkeypatch.setattr(kernels, "find", noting)
    monkeypatch.setattr(modules, "shipped", lambda: kernels)
    for cached in (modules._module, launch._compiled):
        cached.cache_clear()
