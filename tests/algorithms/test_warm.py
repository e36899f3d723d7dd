"""CuPy's kernels that are compiled beforehand: every call that has them compiled can be made."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


@pytest.mark.gpu
def test_every_call_can_be_made(cupy: Any) -> None:
    for call in importlib.import_module("algorithms.views.warm_cuda").calls():
        call()
    cupy.cuda.get_current_stream().synchronize()
