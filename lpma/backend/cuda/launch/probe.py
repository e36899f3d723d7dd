"""What the CUDA devices of a machine can do for a store, found out by trying."""

from __future__ import annotations

from typing import Any

import cupy

from ....cuda import launch


def devices() -> list[dict[str, Any]]:
    """Each device: name, compute capability, memory in bytes, and why it cannot be used (None if it
    can). Raises CuPy's CUDARuntimeError if no driver answers."""
    return [_examine(number) for number in range(cupy.cuda.runtime.getDeviceCount())]


def _examine(number: int) -> dict[str, Any]:
    properties = cupy.cuda.runtime.getDeviceProperties(number)
    found: dict[str, Any] = {
        "device": f"cuda:{number}",
        "name": properties["name"].decode(),
        "compute_capability": f"{properties['major']}.{properties['minor']}",
        "memory_bytes": int(properties["totalGlobalMem"]),
        "why_not": None,
    }
    try:
        with cupy.cuda.Device(number):
            x = cupy.zeros(1, cupy.int32)
            launch.run_together("lpma/cuda/trial.cu", "trial", 1, x)
            found["free_bytes"] = int(cupy.cuda.runtime.memGetInfo()[0])
            if int(x[0]) != 1:
                found["why_not"] = "a kernel ran without effect"
    except (cupy.cuda.compiler.CompileException, RuntimeError, OSError, MemoryError) as error:
        reason = " ".join(str(error).split())[:300]
        found["why_not"] = f"no kernel can be compiled or run ({reason}): see CuPy's installation"
    return found
