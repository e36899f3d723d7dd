"""The CUDA sources: they compile for every shape of store, without a device; their records are
those that the host fills in, their layout is `lpma.layout`'s, and the wheel ships them all."""

from __future__ import annotations

import importlib
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import missing

from lpma.layout import heap_number, level_and_offset

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "lpma" / "backend" / "cuda"
FILES = sorted(path.name for path in SOURCES.glob("*.cu"))
SHAPES = list(product((2, 32, 1024), (0, 4, 8), (0, 1)))  # slots a segment, bytes a weight, times
# Compiling takes seconds a file: by default shapes in which every two values meet.
COMPILED = SHAPES if os.environ.get("LPMA_HYPOTHESIS") == "long" else SHAPES[::4] + SHAPES[3::4]
ARCHITECTURE = "--gpu-architecture=compute_90"  # the first with clusters


@pytest.fixture(scope="module")
def nvrtc() -> Any:
    """CuPy's binding of the compiler, which needs no device."""
    try:
        library = importlib.import_module("cupy_backends.cuda.libs.nvrtc")
        library.getVersion()
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"no CuPy with NVRTC: {error}")
    return library


def headers() -> list[str]:
    """Where CUDA's own headers may lie: cooperative groups come from there."""
    cupy = importlib.import_module("cupy")
    homes = [cupy.cuda.get_cuda_path(), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [Path(home) / "include" for home in homes if home]
    own = Path(str(cupy.__file__)).parent / "_core" / "include"
    places = [own, own / "cupy" / "_cccl" / "libcudacxx", *places]
    return [f"-I{place}" for place in places if place.is_dir()]


def compiled(
    nvrtc: Any,
    source: str,
    folder: Path,
    shape: tuple[int, int, int],
    instances: tuple[str, ...] = (),
) -> None:
    """Fails with the compiler's words. instances: of templates, which are not compiled unasked."""
    program = nvrtc.createProgram(source, "kernel.cu", [], [])
    for name in instances:
        nvrtc.addNameExpression(program, name)
    segment, weight, times = shape
    defines = [f"-DSEGMENT={segment}", f"-DWEIGHT_BYTES={weight}", f"-DTIMES={times}"]
    try:
        nvrtc.compileProgram(
            program, ["--std=c++17", ARCHITECTURE, f"-I{folder}", *headers(), *defines]
        )
    except nvrtc.NVRTCError as error:
        pytest.fail(f"{shape}: {error}\n{nvrtc.getProgramLog(program)}")
    finally:
        nvrtc.destroyProgram(program)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_every_source_compiles_for_every_shape(nvrtc: Any, name: str) -> None:
    for shape in COMPILED:
        compiled(nvrtc, (SOURCES / name).read_text(), SOURCES, shape)


ALGORITHMS = ROOT / "algorithms" / "cuda"
INSTANCES = {
    "core_peel.cu": tuple(f"scan<{compaction}>" for compaction in range(3))
    + tuple(f"loop<{compaction}, {read}>" for compaction in range(3) for read in range(3)),
    "ego_listing.cu": tuple(
        f"{team}<{model}>" for team in ("small", "large", "huge") for model in range(3)
    ),
    "pagerank.cu": tuple(
        f"power_iteration<{width}, {weighted}>"
        for width in (4, 32)
        for weighted in ("true", "false")
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in ALGORITHMS.glob("*.cu")))
def test_every_source_of_the_algorithms_compiles(nvrtc: Any, name: str) -> None:
    source, instances = (ALGORITHMS / name).read_text(), INSTANCES.get(name, ())
    compiled(nvrtc, source, ALGORITHMS, SHAPES[0], instances)


# Fields of the records that the host packs, in order; `key` and `place` of Work come in pairs.
BATCH_FIELDS = ("n", "kind", "src", "dst", "weight", "time", "now", "wide", "one_kind")
SHARED_FIELDS = {"key0": "key", "key1": "key[1]", "place0": "place", "place1": "place[1]"}


def test_records_are_the_hosts(nvrtc: Any) -> None:
    """The structures passed by value have the fields, sizes and places that the host gives them,
    and the words of the report the same numbers."""
    segments = importlib.import_module("lpma.backend.cuda.segments")
    work = importlib.import_module("lpma.backend.cuda.work")
    checks = ['#include "move.cuh"']

    def places(name: str, fields: dict[str, int], size: int) -> None:
        checks.append(f"static_assert(sizeof({name}) == {size});")
        for field, place in fields.items():
            field = SHARED_FIELDS.get(field, field)
            checks.append(f"static_assert(__builtin_offsetof({name}, {field}) == {place});")

    for name, record in (
        ("Store", segments.STORE), ("Work", work.WORK), ("Columns", work.COLUMNS)
    ):  # fmt: skip
        places(name, {f: record.fields[f][1] for f in record.names}, record.itemsize)
    codes = segments.BATCH.format.lstrip("<")
    starts = [struct.calcsize("<" + codes[:i]) for i in range(len(codes))]
    places("Batch", dict(zip(BATCH_FIELDS, starts, strict=True)), segments.BATCH.size)
    for word in work.Report:
        if word.name != "WORDS":
            checks.append(f"static_assert({word.name} == {int(word)});")
    checks.append(f"static_assert(REPORT_WORDS == {int(work.Report.WORDS)});")
    checks.append(f"static_assert(LEVELS == {segments.LEVELS});")
    for shape in COMPILED:
        compiled(nvrtc, "\n".join(checks), SOURCES, shape)


LAYOUT = """
#include "store.cuh"
extern "C" __global__ void layout(const Store s, i64* level, i64* offset, i64* heap) {
  u32 rank = blockIdx.x * blockDim.x + threadIdx.x;
  if (rank >= 1u << s.m) return;
  Slot at = segment_at(s, rank);
  level[rank] = at.level;
  offset[rank] = at.index / SEGMENT;
  heap[rank] = heap_number(s, rank);
}
"""


@pytest.mark.parametrize("m", [0, 1, 5, 12])
def test_the_layout_is_the_hosts(device: str, m: int) -> None:
    """store.cuh against lpma.layout, rank by rank."""
    if device == "cpu":
        pytest.skip("the host's layout is tested in test_layout.py")
    cupy = importlib.import_module("cupy")
    segments = importlib.import_module("lpma.backend.cuda.segments")
    options = ("--std=c++17", f"-I{SOURCES}", "-DSEGMENT=32", "-DWEIGHT_BYTES=4", "-DTIMES=1")
    kernel = cupy.RawModule(code=LAYOUT, options=options).get_function("layout")
    record = np.zeros((), segments.STORE)
    record["m"] = m
    got = [cupy.empty(1 << m, np.int64) for _ in range(3)]
    kernel((-(-(1 << m) // 128),), (128,), (record, *got))
    expected = [(*level_and_offset(rank, m), heap_number(rank, m)) for rank in range(1 << m)]
    assert list(zip(*(column.tolist() for column in got), strict=True)) == expected


# The wheel ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a wheel built from a copy of the sources was installed."""
    try:
        if int(version("setuptools").split(".")[0]) < 77:
            missing("wheel", f"building needs setuptools 77, {version('setuptools')} is here")
    except PackageNotFoundError:
        missing("wheel", "building needs setuptools")
    tree, site = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("site")
    unwanted = shutil.ignore_patterns("__pycache__", "*.nbc", "*.nbi")
    for room in ("lpma", "algorithms", "ingest"):
        shutil.copytree(ROOT / room, tree / room, ignore=unwanted)
    for path in ROOT.iterdir():
        if path.is_file() and path.suffix in (".toml", ".md", ".in", ""):
            shutil.copy(path, tree)
    finished = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation",
         "--no-index", "--wheel-dir", str(tree / "dist"), str(tree)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    (wheel,) = (tree / "dist").glob("lpma-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def test_the_wheel_ships_the_sources(installed: Path) -> None:
    for pattern in ("*.cu", "*.cuh", "*.py"):
        for room in ("lpma", "algorithms", "ingest"):
            ours = {path.relative_to(ROOT): path.read_bytes()
                    for path in (ROOT / room).rglob(pattern)}  # fmt: skip
            theirs = {path.relative_to(installed): path.read_bytes()
                      for path in (installed / room).rglob(pattern)}  # fmt: skip
            assert theirs == ours


@pytest.mark.parametrize("name", FILES)
def test_what_the_wheel_ships_compiles(nvrtc: Any, installed: Path, name: str) -> None:
    folder = installed / SOURCES.relative_to(ROOT)
    compiled(nvrtc, (folder / name).read_text(), folder, (32, 4, 1))
