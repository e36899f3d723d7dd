"""The CUDA sources: every kernel compiles, for old devices and new ones, without any device; every
kernel that the host launches exists; records and layout are the same on host and device.

`make cuda` installs a compiler and runs this."""

from __future__ import annotations

import ast
import importlib
import os
import re
import struct
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpma.pma.layout import heap_number, level_and_offset, place_in_level
from tests.conftest import missing
from tests.support.nvrtc import BrokenSource, Compiler, Unavailable

ROOT = Path(__file__).parents[2]
STORE = ROOT / "lpma" / "backend" / "cuda"
ALGORITHMS = ROOT / "algorithms"
BENCHMARKS = ROOT / "benchmarks"

Shape = tuple[int, int, bool]  # slots a segment, bytes a weight, times
SIZES = [1 << i for i in range(1, 11)]
KINDS = list(product((0, 4, 8), (False, True)))
USUAL = (32, 4, True)
FLAGS = ("false", "true")
LONG = os.environ.get("LPMA_HYPOTHESIS") == "long"
pytestmark = pytest.mark.nightly


def files(folder: Path) -> list[str]:
    """The sources in a folder and below it, by the names that lpma.cuda.sources uses."""
    return sorted(str(path.relative_to(ROOT)) for path in folder.rglob("*.cu"))


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    try:
        return Compiler()
    except Unavailable as error:
        missing("nvrtc", f"{error}; `make cuda` installs them and runs this")


def host(name: str) -> Any:
    """A module of ours that imports CuPy."""
    return importlib.import_module(name)


def shapes(age: int, of: int) -> list[Shape]:
    """The shapes to compile for architecture number `age` of `of`. Each architecture gets the usual
    shape; the others are dealt out, so that every size and every kind occurs. All shapes where the
    long tests were asked for."""
    if LONG:
        return [(size, *kind) for size in SIZES for kind in KINDS]
    dealt = [(size, *KINDS[i % len(KINDS)]) for i, size in enumerate(SIZES)]
    return [USUAL, *dealt[age::of]]


# What the host launches ------------------------------------------------------------------------


def calls(folder: Path) -> Iterator[tuple[str, str]]:
    """(file, kernel) wherever the host's code in a folder names the two beside each other. The
    kernel is a pattern, since the name of a template's instance may be computed."""
    names = {name: file for file in files(folder) for name in (file, re.escape(file))}
    if folder == STORE:  # its sources are in one folder, and are named by their stems
        names |= {Path(file).stem: file for file in files(folder)}
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text())
        constants = {
            name.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for name in node.targets
            if isinstance(name, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call | ast.Tuple):
                given = node.args if isinstance(node, ast.Call) else node.elts
                named = (constants.get(a.id, a) if isinstance(a, ast.Name) else a for a in given)
                words = [_pattern(argument) for argument in named]
                for file, kernel in pairwise(words):
                    if file in names and kernel is not None:
                        yield names[file], kernel


def _pattern(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"\w+"
            for part in node.values
        )
    return None


def instances(file: str) -> tuple[str, ...]:
    """The instances of templates in a file of the algorithms that the host may launch."""
    if file == "algorithms/core/paper/peel.cu":
        peel = host("algorithms.core.paper.cuda")
        scans = (f"scan<{i}>" for i in peel.COMPACTIONS.values())
        pairs = product(peel.COMPACTIONS.values(), peel.READS.values())
        return (*scans, *(f"loop<{i}, {j}>" for i, j in pairs))
    if file == "algorithms/diversity/listing/listing.cu":
        models = range(len(host("algorithms.diversity.model").MODELS))
        return tuple(f"{team}<{i}>" for team in ("small", "large", "huge") for i in models)
    if file == "algorithms/diversity/listing/absorb.cu":
        models = host("algorithms.diversity.model").MODELS
        return tuple(f"absorb<{models.index(model)}>" for model in ("core", "truss"))
    if file == "algorithms/pagerank/pagerank.cu":
        return tuple(f"power_iteration<{flag}>" for flag in FLAGS)
    if file == "algorithms/biclique/wedges/wedges.cu":
        teams, visits = ("light", "middle", "heavy"), ("Pairs", "Histogram")
        return tuple(f"{team}<{visit}>" for team in teams for visit in visits)
    if file == "algorithms/shortest_paths/paths.cu":
        kernels = ("distances", "measure", "tree")
        kinds = host("algorithms.shortest_paths.cuda").C_NAMES.values()
        return tuple(f"{kernel}<{kind}>" for kernel in kernels for kind in kinds)
    return ()


def check_names(file: str, folder: Path, found: set[str]) -> None:
    """Whatever the host launches from a file is among the kernels found in it."""
    for of, pattern in calls(folder):
        if of == file:
            assert any(re.fullmatch(pattern, name) for name in found), f"no {pattern} in {file}"


# They compile ----------------------------------------------------------------------------------


@pytest.fixture(params=range(3), ids=["old", "sm_80", "sm_90"])
def age(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.mark.parametrize("file", files(STORE))
def test_the_stores_kernels_compile(compiler: Compiler, file: str, age: int) -> None:
    kernels = host("lpma.backend.cuda.launch.kernels")
    shaped = host("lpma.backend.cuda.launch.options")
    given, stem = host("lpma.cuda.sources").given, Path(file).stem
    architecture = compiler.architectures[age]
    any_shape = stem.startswith("sort")
    of_this = [shaped.ANY_SHAPE] if any_shape else shapes(age, len(compiler.architectures))
    expected = {kernel for kernel, of in kernels.FILES.items() if of == stem}
    for number, shape in enumerate(of_this):
        code, options = given(file, shaped.options_for(*shape))
        # The first is what is shipped. Optimising takes four fifths of the time: the others, which
        # must compile and have room on a device, are optimised in the long tests alone.
        hurry = () if number == 0 or LONG else compiler.hurry
        found = compiler.compile(code, (*options, *hurry), architecture)
        assert expected <= found
        check_names(file, STORE, found)


@pytest.mark.parametrize("file", files(ALGORITHMS))
def test_the_algorithms_kernels_compile(compiler: Compiler, file: str, age: int) -> None:
    code, options = host("lpma.cuda.sources").given(file)
    asked = instances(file)
    assert set(asked) == set(host("lpma.cuda.sources").instances(file))
    found = compiler.compile(code, options, compiler.architectures[age], asked)
    assert set(asked) <= found
    check_names(file, ALGORITHMS, found)
    plain = re.sub(r"__launch_bounds__\([^)]*\)", "", code)
    templates = re.findall(r"template <[^>]*>\s*__global__ void\s*(\w+)\(", plain)
    assert {name.partition("<")[0] for name in asked} == set(templates)


def test_the_benchmarks_kernels_compile(compiler: Compiler, age: int) -> None:
    given, items = host("benchmarks.device").given, host("benchmarks.controls.flat_merge").ITEMS
    macros: dict[str, list[dict[str, int]]] = {
        "flat_merge": [{"COLUMNS": int(columns), "ITEMS": n} for columns, n in items.items()],
        "radix_sort": [{"ORDER": 0}, {"ORDER": 1}],
    }
    for file in files(BENCHMARKS):
        for defined in macros.get(Path(file).stem, [{}]):
            name = file.removeprefix("benchmarks/").removesuffix(".cu")
            code, options = given(name, defined)
            asked = host("lpma.cuda.sources").instances(file)
            assert compiler.compile(code, options, compiler.architectures[age], asked)


def test_what_doctor_tries_compiles(compiler: Compiler, age: int) -> None:
    code, options = host("lpma.cuda.sources").given("lpma/cuda/trial.cu")
    assert compiler.compile(code, options, compiler.architectures[age]) == {"trial"}


def test_a_broken_kernel_does_not(compiler: Compiler) -> None:
    """Neither wrong code nor a kernel that no device has room for."""
    shaped = host("lpma.backend.cuda.launch.options")
    file = "lpma/backend/cuda/kernels/query.cu"
    code, options = host("lpma.cuda.sources").given(file, shaped.options_for(*USUAL))
    for broken in (code + "\nnothing", code.replace("#include", "#inclued", 1)):
        with pytest.raises(BrokenSource, match="error"):
            compiler.compile(broken, options, 90)
    greedy = "__global__ void greedy(int* x) { __shared__ int all[99999]; *x = all[*x]; }"
    with pytest.raises(BrokenSource):
        compiler.compile(greedy, (), 90)


# Records and layout ----------------------------------------------------------------------------

# The fields of the records that the host packs, in order; Work has two of `key` and `place`.
BATCH_FIELDS = ("n", "kind", "src", "dst", "weight", "time", "now", "wide", "one_kind")
REQUEST_FIELDS = (
    "answer", "ticket", "most", "least", "back_most", "back_least", "weight", "time", "least_held",
    "src", "dst", "kind", "from_top", "back_from_top", "back",
)  # fmt: skip
SHARED_FIELDS = {"key0": "key", "key1": "key[1]", "place0": "place", "place1": "place[1]"}


def test_records_are_the_hosts(compiler: Compiler) -> None:
    """The structures passed by value have the sizes that the host gives them and the fields at the
    same offsets, and the words of the report have the same numbers."""
    segments, work = host("lpma.backend.cuda.store.segments"), host("lpma.backend.cuda.store.work")
    staged_batch = host("lpma.backend.cuda.upload.staged_batch")
    single = host("lpma.backend.cuda.update.single")
    checks = ['#include "lpma/backend/cuda/kernels/one.cu"']

    def places(name: str, fields: dict[str, int], size: int) -> None:
        checks.append(f"static_assert(sizeof({name}) == {size});")
        for field, place in fields.items():
            field = SHARED_FIELDS.get(field, field)
            checks.append(f"static_assert(__INTADDR__(&(({name}*)0)->{field}) == {place});")

    for name, record in (
        ("Store", segments.STORE), ("Work", work.WORK), ("Columns", work.COLUMNS)
    ):  # fmt: skip
        places(name, {f: record.fields[f][1] for f in record.names}, record.itemsize)
    for name, packed, fields in (
        ("Batch", staged_batch.BATCH, BATCH_FIELDS), ("Request", single.REQUEST, REQUEST_FIELDS)
    ):  # fmt: skip
        codes = packed.format.lstrip("<")
        starts = [struct.calcsize("<" + codes[:i]) for i in range(len(codes))]
        places(name, dict(zip(fields, starts, strict=True)), packed.size)
    values = host("lpma.backend.values")
    for word, number in (
        ("REFUSED", values.REFUSED), ("SKIP", values.SKIP), ("INSERT", values.INSERT),
        ("WRITE", values.WRITE), ("REMOVE", values.DELETE), ("ANOTHER", single.ANOTHER),
        ("SAME", single.SAME),
    ):  # fmt: skip
        checks.append(f"static_assert({word} == {number});")
    for word in work.Report:
        if word.name != "WORDS":
            checks.append(f"static_assert({word.name} == {int(word)});")
    checks.append(f"static_assert(REPORT_WORDS == {int(work.Report.WORDS)});")
    checks.append(f"static_assert(LEVELS == {segments.LEVELS});")
    checks.append('#include "lpma/cuda/work_queue.cuh"')
    checks.append(f"static_assert(USUAL_PIECE == {host('lpma.cuda.work_queue').PIECE});")
    for kind in KINDS:
        shape = host("lpma.backend.cuda.launch.options").options_for(USUAL[0], *kind)
        _, options = host("lpma.cuda.sources").given("lpma/backend/cuda/kernels/query.cu", shape)
        compiler.compile("\n".join(checks), options, 90)


ASKED_FIELDS = (
    *(f"{batch}.{field}" for batch in ("batch", "given") for field in BATCH_FIELDS),
    "bounds.most", "bounds.least", "bounds.sign", "bounds.plan", "bounds.top_down",
    "bounds.block_slots", "changed", "inserted", "answer",
    "ticket", "next_report", "most_cost", "leaf_cost", "window_cost", "direction",
    "checked",
)  # fmt: skip


def test_an_order_is_the_hosts(compiler: Compiler) -> None:
    """The same of the one argument of apply.cu, and of how a batch can end."""
    launch_block = host("lpma.backend.cuda.update.launch_block")
    codes = launch_block.ASKED.format.lstrip("<").replace(" ", "")
    starts = [struct.calcsize("<" + codes[:i]) for i in range(len(codes))]
    places = {name: at for name, at in launch_block.AT.items() if name != "asked"}
    for field, start in zip(ASKED_FIELDS, starts, strict=True):
        places[field] = launch_block.AT["asked"] + start
    checks = ['#include "lpma/backend/cuda/kernels/apply.cu"']
    checks.append(f"static_assert(sizeof(Order) == {launch_block.ORDER.itemsize});")
    checks += [
        f"static_assert(__INTADDR__(&((Order*)0)->{field}) == {place});"
        for field, place in places.items()
    ]
    for word in ("SKIPPED", "REFUSED", "APPLIED"):
        checks.append(f"static_assert({word} == {getattr(launch_block, word)});")
    checks.append(f"static_assert(ANSWER_HEAD == {launch_block.HEAD});")
    shape = host("lpma.backend.cuda.launch.options").options_for(*USUAL)
    _, options = host("lpma.cuda.sources").given("lpma/backend/cuda/kernels/apply.cu", shape)
    compiler.compile("\n".join(checks), options, 90)


# By files, and by kernel: what a block of it keeps in its dynamic shared memory, one after the
# other.
STAGE = "BLOCK_SLOTS * (8 + 8 * TIMES + WEIGHT_BYTES) + 8 * BLOCK_SEGMENTS"
KEPT: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {
    ("leaves.cuh", "merge.cuh", "windows.cuh"): {
        "move_windows": (STAGE,), "even_out": (STAGE,),
        "move_leaves": ("WARPS * sizeof(Leaves<LEAVES_A_WARP>)",),
        "apply_batch": ("sizeof(Merging)", "WARPS * sizeof(Leaves<LEAVES_AT_ONCE>)", STAGE),
    },
    ("rebuild.cu",): {"rebuild": ("WARPS * sizeof(Stretch)",)},
    ("sort.cu",): {"sort_batch": ("sizeof(Pool)",)},
}  # fmt: skip
# What else the host counts with.
COUNTED: dict[str, Any] = {
    "windows.cuh": lambda kernels, size: {"BLOCK_SLOTS": kernels.block_slots(size)},
    "sort.cu": lambda kernels, _: {"SORT_THREADS": kernels.SORT_THREADS},
}  # fmt: skip


@pytest.mark.parametrize("included", KEPT, ids=" ".join)
def test_kernels_get_the_shared_memory_that_they_use(
    compiler: Compiler, included: tuple[str, ...]
) -> None:
    kernels = host("lpma.backend.cuda.launch.kernels")
    shaped = host("lpma.backend.cuda.launch.options")
    assert {name for kept in KEPT.values() for name in kept} == set(kernels.shared_bytes(*USUAL))
    others = [(2, 0, False), (128, 8, True), (512, 4, True), (1024, 4, False)]
    for shape in [USUAL, *(() if included[0].startswith("sort") else others)]:
        there = kernels.shared_bytes(*shape)
        checks = [f'#include "lpma/backend/cuda/kernels/{file}"' for file in included]
        for name, kept in KEPT[included].items():
            checks += [f"static_assert({there[name]} >= {each});" for each in kept]
            largest = " || ".join(f"{there[name]} == {each}" for each in kept)
            checks.append(f"static_assert({largest});")
        words = {"THREADS": shaped.THREADS}
        for file in included:
            words |= COUNTED.get(file, lambda *_: {})(kernels, shape[0])
        checks += [f"static_assert({word} == {number});" for word, number in words.items()]
        asked = shaped.source("query"), shaped.options_for(*shape)
        _, options = host("lpma.cuda.sources").given(*asked)
        compiler.compile("\n".join(checks), options, 90)


LAYOUT = """
#include "lpma/backend/cuda/kernels/store.cuh"
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
    """store.cuh against lpma.pma.layout, rank by rank."""
    if device == "cpu":
        pytest.skip("the host's layout is tested in test_layout.py")
    cupy = importlib.import_module("cupy")
    segments = importlib.import_module("lpma.backend.cuda.store.segments")
    options = ("--std=c++17", f"-I{ROOT}", "-DSEGMENT=32", "-DWEIGHT_BYTES=4", "-DTIMES=1")
    kernel = cupy.RawModule(code=LAYOUT, options=options).get_function("layout")
    record = np.zeros((), segments.STORE)
    record["m"], record["parts"] = m, 4
    got = [cupy.empty(1 << m, np.int64) for _ in range(3)]
    kernel((-(-(1 << m) // 128),), (128,), (record, *got))
    expected = []
    for rank in range(1 << m):
        level, offset = level_and_offset(rank, m)
        expected.append((level, place_in_level(level, offset), heap_number(rank, m)))
    assert list(zip(*(column.tolist() for column in got), strict=True)) == expected
