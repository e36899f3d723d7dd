"""What is compiled beforehand for a GPU: every call that is made for it can be made."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


@pytest.mark.gpu
def test_every_call_can_be_made(cupy: Any) -> None:
    warm = importlib.import_module("lpma.backend.cuda.launch.warm_up")
    for name in warm.LISTS:
        for call in importlib.import_module(name).calls():
            call()
    cupy.cuda.get_current_stream().synchronize()
