"""Connected components on a CUDA device: three kernels, with nothing read back between them.

components.cu has the method. Requires indptr int64[n+1] and indices uint32[m] on the current
device; work is enqueued on the current stream.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import launch

Array = Any  # cupy.ndarray


def components(indptr: Array, indices: Array, is_symmetric: bool) -> Array:
    """int32[n]: the smallest vertex of each vertex's component.

    is_symmetric: every edge is in the rows of both ends, so that reading one of them suffices."""
    n, m = len(indptr) - 1, len(indices)
    parent = cupy.empty(n, np.int32)
    launch.run("algorithms/components/components.cu", "hang", n, indptr, indices, n, parent)
    launch.run("algorithms/components/components.cu", "flatten", n, n, parent)
    launch.run(
        "algorithms/components/components.cu", "hook", m,
        indptr, indices, n, m, int(is_symmetric), parent,
    )  # fmt: skip
    launch.run("algorithms/components/components.cu", "flatten", n, n, parent)
    return parent
