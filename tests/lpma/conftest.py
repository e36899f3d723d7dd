"""What the tests of the store run on: each of the CPU's two backends and the GPU's; and, in the
conformance tests, the two of the tests."""

from __future__ import annotations

from typing import Any

import pytest

import lpma
from lpma.backend import Host, open_backend
from lpma.backend.protocol import Place
from tests.conftest import missing
from tests.support.seam import counting_ahead, plain, slow


@pytest.fixture(
    scope="module",
    params=["cpu", "plain", "slow", "counts ahead", pytest.param("cuda", marks=pytest.mark.gpu)],
)
def make(request: pytest.FixtureRequest) -> Any:
    """Makes a backend, its device being the current one."""
    place: Place = Host()
    backend = {"plain": plain, "slow": slow, "counts ahead": counting_ahead}.get(request.param)
    if backend is None:
        try:
            _, place, backend = open_backend(request.param)
        except lpma.DeviceError as error:
            missing("gpu", str(error))
    with place:
        yield backend


@pytest.fixture(
    scope="session", params=["cpu", "plain", pytest.param("cuda", marks=pytest.mark.gpu)]
)
def device(request: pytest.FixtureRequest) -> str:
    """As in tests/conftest.py, and the CPU once more, where the plain backend keeps all stores."""
    name: str = request.param
    try:
        name = "cpu" if name == "plain" else name
        lpma.Graph(device=name)
    except lpma.DeviceError as error:
        missing("gpu", f"device {name}: {error}")
    return name
