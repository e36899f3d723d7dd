"""`python -m lpma.backend.cuda.build`: compile all kernels beforehand, for wheels to ship.

Every file of the store is compiled for the usual shapes of stores, and every file of the algorithms
as it is. That takes some minutes, and needs CuPy and NVRTC, which come as wheels, and no device.
What is not in the archive, such as a store with segments of 64 slots, is compiled when it is
needed, as if there were no archive.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from cupy_backends.cuda.libs import nvrtc

from ...cuda.archive import COMPILED_WITH, PATH, Archive, Binary, write
from ...cuda.sources import ROOT, Options, given, instances
from .kernels import ANY_SHAPE
from .options import options_for

SEGMENT_SIZE = 32
WEIGHT_BYTES = (0, 4, 8)
ARCHITECTURES = (70, 75, 80, 86, 89, 90, 100, 120)
PTX = 100  # for devices newer than all of these
Module = tuple[str, Options]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lpma.backend.cuda.build", description=__doc__)
    parser.add_argument("--architectures", metavar="N,…", help="such as 80,90; default: all")
    parser.add_argument("--output", type=Path, default=PATH, metavar="FILE")
    given_ = parser.parse_args()
    known = set(nvrtc.getSupportedArchs())
    asked = given_.architectures or ",".join(map(str, ARCHITECTURES))
    targets = [(int(n), False) for n in asked.split(",") if int(n) in known]
    if given_.architectures is None:
        targets.append((PTX, True))
    began = time.perf_counter()
    modules = build(targets)
    write(given_.output, ".".join(map(str, nvrtc.getVersion())), modules)
    facts = Archive(given_.output).facts()
    print(
        f"{given_.output}: {facts['modules']} files and choices of options for "
        f"{', '.join(facts['architectures'])}, {facts['bytes'] / 2**20:.1f} MiB, "
        f"{time.perf_counter() - began:.0f} s",
        file=sys.stderr,
    )


def everything() -> Iterator[Module]:
    """All files with the options that the host launches them with, for the usual stores."""
    yield "lpma/cuda/trial.cu", ()
    for file in _files("lpma/backend/cuda"):
        if Path(file).stem.startswith("sort"):
            yield file, options_for(*ANY_SHAPE)
            continue
        for weight_bytes, times in product(WEIGHT_BYTES, (True, False)):
            yield file, options_for(SEGMENT_SIZE, weight_bytes, times)
    for file in _files("algorithms"):
        yield file, ()


def build(targets: list[tuple[int, bool]]) -> list[tuple[str, Options, list[Binary]]]:
    """Everything, compiled for each of (architecture, whether PTX is wanted)."""
    modules = list(everything())
    with ThreadPoolExecutor() as pool:
        jobs = [[pool.submit(compiled, *module, *target) for target in targets]
                for module in modules]  # fmt: skip
        return [
            (file, options, [job.result() for job in row])
            for (file, options), row in zip(modules, jobs, strict=True)
        ]


def compiled(file: str, options: Options, architecture: int, ptx: bool = False) -> Binary:
    """A file with all instances of its templates. Raises RuntimeError with the compiler's words."""
    code, all_options = given(file, options)
    names = instances(file)
    kind = "compute" if ptx else "sm"
    program = nvrtc.createProgram(code, file, [], [])
    try:
        for name in names:
            nvrtc.addNameExpression(program, name)
        target = f"--gpu-architecture={kind}_{architecture}"
        try:
            nvrtc.compileProgram(program, [*all_options, *COMPILED_WITH, target])
        except nvrtc.NVRTCError as error:
            raise RuntimeError(f"{file}: {error}\n{nvrtc.getProgramLog(program)}") from None
        read: Any = nvrtc.getPTX if ptx else nvrtc.getCUBIN
        symbols = map(partial(nvrtc.getLoweredName, program), names)
        return Binary(architecture, ptx, read(program), dict(zip(names, symbols, strict=True)))
    finally:
        nvrtc.destroyProgram(program)


def _files(folder: str) -> list[str]:
    """The sources in a folder and below it."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*.cu"))


if __name__ == "__main__":
    main()
