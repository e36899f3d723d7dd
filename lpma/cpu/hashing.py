"""The hash of splitmix.py, for kernels."""

from __future__ import annotations

from .jit import inlined
from .splitmix import mix

mixed = inlined(mix)
