"""What callers give becomes columns: from a device without a look at a single value.

A stand-in for CuPy, NumPy in its clothes, shows on any machine what happens to device arrays:
which stay, which come to the host, what is refused, and that nothing waits for the device."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import lpma
from lpma import Batch, BatchError, Columns, Kind
from lpma.arguments.convert import MAX_VERTEX, NO_VERTEX, as_array, id_column, vertices_asked_for

Array = npt.NDArray[Any]


class DeviceArray(np.ndarray[Any, Any]):
    """An array that says it lies on device 0, and counts the times that its values are read."""

    reads = 0

    @property
    def device(self) -> Any:
        return Device()

    def get(self) -> Array:
        DeviceArray.reads += 1
        return self.view(np.ndarray).copy()

    def __int__(self) -> int:
        DeviceArray.reads += 1
        return int(self.view(np.ndarray))

    def __bool__(self) -> bool:
        DeviceArray.reads += 1
        return bool(self.view(np.ndarray))

    def max(self, *args: Any, **options: Any) -> Any:
        return np.asarray(self.view(np.ndarray).max(*args, **options)).view(DeviceArray)

    def min(self, *args: Any, **options: Any) -> Any:
        return np.asarray(self.view(np.ndarray).min(*args, **options)).view(DeviceArray)


class Device:
    id = 0

    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...


class Foreign:
    """Another library's array, with DLPack only."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __array__(self, *args: Any, **options: Any) -> Array:
        raise TypeError("not from a device")


def on_the_device(values: Any, dtype: Any = None) -> Any:
    return np.array(values, dtype).view(DeviceArray)


@pytest.fixture(autouse=True)
def standing_in(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = ModuleType("cupy")
    names: dict[str, Any] = {
        "ndarray": DeviceArray,
        "from_dlpack": lambda foreign: foreign.array.view(DeviceArray),
    }
    for name in (
        "ascontiguousarray",
        "asarray",
        "broadcast_to",
        "empty",
        "maximum",
        "minimum",
        "where",
    ):

        def function(*args: Any, name: str = name, **options: Any) -> Any:
            return getattr(np, name)(*args, **options).view(DeviceArray)

        names[name] = function
    for name, value in names.items():
        setattr(cupy, name, value)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(DeviceArray, "reads", 0)


@pytest.mark.parametrize(
    "given, expected",
    [
        (on_the_device([1, MAX_VERTEX], np.uint32), [1, MAX_VERTEX]),
        (on_the_device([1, -1, 2**32 - 2, 2**32, -(2**63), 2**63 - 1], np.int64),
         [1, NO_VERTEX, MAX_VERTEX, NO_VERTEX, NO_VERTEX, NO_VERTEX]),
        (on_the_device([5, -5, -(2**31)], np.int32), [5, NO_VERTEX, NO_VERTEX]),
        (on_the_device([5, -5], np.int8), [5, NO_VERTEX]),
        (on_the_device([5, 2**64 - 1, 2**32], np.uint64), [5, NO_VERTEX, NO_VERTEX]),
        (on_the_device([5, 65535], np.uint16), [5, 65535]),
        (on_the_device([], np.float64), []),
        (on_the_device([5.0, 0.5, -1.0, 1e300, -1e300, 2.0**32], np.float64),
         [5, *[NO_VERTEX] * 5]),
        (on_the_device([7.0, 3.5], np.float32), [7, NO_VERTEX]),
        (on_the_device(7, np.int64), [7]),
    ],
)  # fmt: skip
def test_ids_stay_and_nobody_looks(given: Any, expected: list[int]) -> None:
    column = id_column(as_array(given, "src"), "src")
    assert isinstance(column, DeviceArray)
    assert column.dtype == np.uint32
    assert column.tolist() == expected
    assert DeviceArray.reads == 0


def test_ids_asked_for_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no id is refused where it is looked up: tests/lpma/test_device_arrays.py."""
    monkeypatch.setattr(DeviceArray, "reads", 0)
    for bad in ([0, -1], [0, 2**32 - 1], [0, 2**40]):
        ids = vertices_asked_for(on_the_device(bad, np.int64), "u")
        assert ids.tolist() == [0, NO_VERTEX]
    assert vertices_asked_for(on_the_device([3, 4], np.int64), "u").tolist() == [3, 4]
    assert DeviceArray.reads == 0


@pytest.mark.parametrize(
    "src, message",
    [
        (on_the_device([0.5j, 1.0]), "integers"),
        (on_the_device([True, False]), "integers"),
        (on_the_device([[1, 2], [3, 4]]), "dimension"),
        (on_the_device([1, 2, 3]), "rows"),
    ],
)
def test_what_can_be_seen_without_a_look_is_refused(src: Any, message: str) -> None:
    for make in (
        lambda: Batch.from_columns(0, src, on_the_device([1, 2])),
        lambda: Columns.edges(Kind.INSERT, src, on_the_device([1, 2]), 1.0, None),
    ):
        with pytest.raises(BatchError, match=message):
            make()


def test_edge_updates_stay() -> None:
    src, dst = on_the_device([1, 2, 3]), on_the_device([4, 5, 6], np.uint32)
    weight, time = on_the_device([0.5, 1, 2], np.float32), on_the_device([7, 8, 9], np.int32)
    made = Batch.from_columns([0, 1, 0], src, dst, weight, time)
    assert made.on_device
    assert not made.checked
    assert made.dst is dst or np.shares_memory(made.dst, dst)
    assert made.weight is not None
    assert made.time is not None
    assert made.weight.dtype == np.float32
    assert made.time.dtype == np.int64
    assert type(made.kind) is np.ndarray
    hub = Columns.edges(Kind.INSERT, 4, dst, 2.5, 11)
    assert hub.src.tolist() == [4, 4, 4]
    assert hub.weight is not None
    assert hub.time is not None
    assert (hub.weight.tolist(), hub.time.tolist()) == ([2.5] * 3, [11] * 3)
    assert not hub.checked
    part = made.rows(1, 3)
    assert (part.src.tolist(), part.checked) == ([2, 3], False)
    assert DeviceArray.reads == 0


def test_mixed_batches_and_vertices_come_to_the_host() -> None:
    src, dst = on_the_device([1, 2, 3]), on_the_device([4, 5, 2])
    for made in (
        Batch.from_columns(on_the_device([0, Kind.EDGE, Kind.HOPS]), src, dst),
        Columns.edges(Kind.ADD_VERTEX, src, None, None, None),
    ):
        assert not made.on_device
    with pytest.raises(BatchError, match="hops"):
        Batch.from_columns([Kind.HOPS] * 3, src, on_the_device([1, 2, 0]))


def test_a_graph_on_the_host_takes_them_in() -> None:
    g = lpma.Graph(device="cpu")
    g.insert(on_the_device([1, 2]), Foreign(np.array([2, 3])), on_the_device([0.5, 2.0]), 9)
    g.apply(Batch.from_columns(0, on_the_device([4]), on_the_device([5]), time=on_the_device([3])))
    before = g.version
    for bad in (on_the_device([1, -1]), on_the_device([1, 2**32 - 1]), Foreign(np.array([0.5, 1]))):
        with pytest.raises(BatchError):
            g.insert(bad, on_the_device([1, 2]))
        with pytest.raises(BatchError):
            g.apply(Batch.from_columns(0, bad, on_the_device([1, 2])))
        with pytest.raises(BatchError):
            g.degree(bad)
    with pytest.raises(BatchError):
        g.insert([1, 2], [3, 4], on_the_device([1.0, np.nan]))
    assert g.version == before
    g.check()
    answer = g.edges(on_the_device([1, 2, 4]), Foreign(np.array([2, 3, 5])))
    assert type(answer.found) is np.ndarray
    assert answer.found.all()
    assert answer.times is not None
    assert answer.times.tolist() == [9, 9, 3]
    assert g.degree(on_the_device([1, 9])).tolist() == [1, 0]


def test_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(BatchError, match="pip install"):
        lpma.Graph(device="cpu").insert(Foreign(np.array([1])), [2])
