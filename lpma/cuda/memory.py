"""Memory of the current device."""

from __future__ import annotations

import cupy


def free_bytes() -> int:
    """What can be allocated: what the driver has free, and what CuPy's pool holds unused."""
    pool = cupy.get_default_memory_pool()
    return int(cupy.cuda.Device().mem_info[0]) + int(pool.free_bytes())
