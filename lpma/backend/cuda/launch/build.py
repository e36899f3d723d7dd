"""`python -m lpma.backend.cuda.launch.build`: compile all kernels beforehand, for wheels to ship.

That takes some minutes, and needs CuPy and NVRTC, which come as wheels, and no device. What is not
in the archive, such as a store with segments of 64 slots, is compiled when it is needed.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from cupy_backends.cuda.libs import nvrtc

from ....cuda.archive import COMPILED_WITH, PATH, Archive, Binary, write
from ....cuda.sources import Options, given, instances
from .options import prebuilt_kernels

ARCHITECTURES = (70, 75, 80, 86, 89, 90, 100, 120)
PTX = 100  # for devices newer than all of these


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m lpma.backend.cuda.launch.build", description=__doc__
    )
    parser.add_argument(
        "--architectures", metavar="N,…", help="such as 80,90; default: those in use"
    )
    parser.add_argument("--output", type=Path, default=PATH, metavar="FILE")
    asked = parser.parse_args()
    known = set(nvrtc.getSupportedArchs())
    if asked.architectures is None:
        targets = [(n, False) for n in ARCHITECTURES if n in known]
        targets.append((min(PTX, max(known)), True))
    else:
        targets = [(int(n), False) for n in asked.architectures.split(",")]
    began = time.perf_counter()
    modules = build(targets)
    write(asked.output, ".".join(map(str, nvrtc.getVersion())), modules)
    facts = Archive(asked.output).facts()
    print(
        f"{asked.output}: {facts['modules']} files and choices of options for "
        f"{', '.join(facts['architectures'])}, {facts['bytes'] / 2**20:.1f} MiB, "
        f"{time.perf_counter() - began:.0f} s",
        file=sys.stderr,
    )


def build(targets: list[tuple[int, bool]]) -> list[tuple[str, Options, list[Binary]]]:
    """Everything, compiled for each of (architecture, whether PTX is wanted)."""
    modules = list(prebuilt_kernels())
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


if __name__ == "__main__":
    main()
