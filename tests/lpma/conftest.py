"""What the tests of the store run on: each of the CPU's two backends and the GPU's; and, in the
conformance tests, the two of the tests."""

from __future__ import annotations

from typing import Any

import pytest

import lpma
from lpma.backend import open_backend
from tests.conftest import CUDA, missing
from tests.support.seam import counting_ahead, on_numpy, slow


@pytest.fixture(scope="module", params=["cpu", "numpy", "slow", "counts ahead", *CUDA])
def make(request: pytest.FixtureRequest) -> Any:
    """Makes a backend, its device being the current one."""
    backend = {"numpy": on_numpy, "slow": slow, "counts ahead": counting_ahead}.get(request.param)
    if backend is None:
        try:
            _, _, backend = open_backend(request.param)
        except lpma.DeviceError as error:
            missing("gpu", str(error))
    return backend


# For a test that holds a graph against the model: the CPU with kernels, the NumPy backend that
# keeps stores until those are compiled, and a GPU. Conformance tests hold that one against the
# model, too, so that other tests need not run on it.
every_backend = pytest.mark.parametrize("device", ["cpu", "numpy", *CUDA], indirect=True)


@pytest.fixture(scope="session", params=["cpu", *CUDA])
def device(request: pytest.FixtureRequest) -> str:
    """As in tests/conftest.py. "numpy", of `every_backend`: "cpu", and the NumPy backend keeps all
    stores."""
    name: str = "cpu" if request.param == "numpy" else request.param
    try:
        lpma.Graph(device=name)
    except lpma.DeviceError as error:
        missing("gpu", f"device {name}: {error}")
    return name
