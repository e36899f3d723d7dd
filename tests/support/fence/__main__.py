"""Runs a module in a fenced process: python -m tests.support.fence SIDE MODULE [ARGUMENTS]."""

from __future__ import annotations

import atexit
import faulthandler
import runpy
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from lpma.cpu import compiling, ready

from . import SIDES, UNAVAILABLE, Fence, Unavailable, library


def main() -> None:
    if len(sys.argv) < 3 or sys.argv[1] not in SIDES:
        sys.exit(__doc__)
    side, module = sys.argv[1:3]
    faulthandler.enable()
    compiling.compile_all()  # or NumPy alone would keep the first stores
    ready.note_compiled()
    try:
        with TemporaryDirectory() as directory:
            fence = Fence(side, library(Path(directory)))
    except Unavailable as error:
        print(f"there is no fence: {error}", file=sys.stderr)
        sys.exit(UNAVAILABLE)
    atexit.register(_tell, fence)
    sys.argv = sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _tell(fence: Fence) -> None:
    fenced, others = fence.counts
    print(f"fence: {fenced} arrays fenced, {others} not", file=sys.stderr)


if __name__ == "__main__":
    main()
