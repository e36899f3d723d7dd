"""Compiling our CUDA sources for the host.

The compiler gets one file: a source with all that it includes, behind emulated.h, and for each
kernel a function that launches it. What was compiled is kept in the system's folder for temporary
files, under a hash of all that went into it."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from lpma.cuda.sources import ROOT, Options, instances

HERE = Path(__file__).parent
REPLACED = {"lpma/cuda/grid.cuh": HERE / "grid.cuh"}
TAKEN_AWAY: list[str] = []  # pieces of code that are left out
# Not unique: else a block's memory of one shape of store would be that of another, which has less.
FLAGS = (
    "-std=c++20", "-O1", "-fno-gnu-unique", "-shared", "-fPIC", "-pthread", "-w", "-fpermissive",
    "-fno-strict-aliasing", "-fwrapv", "-U_FORTIFY_SOURCE", f"-I{HERE}",
)  # fmt: skip

_INCLUDE = re.compile(r'^#include "([^"]+)"$', re.MULTILINE)
_BOUNDS = r"(?:__launch_bounds__\((?:[^()]|\([^()]*\))*\)\s*)?"
_KERNEL = re.compile(rf'extern "C" __global__ void\s+{_BOUNDS}(\w+)\(')
_DYNAMIC = re.compile(r"extern __shared__ ([\w ]+?)\s+(\w+)\[\];")
_LAUNCH = """
extern "C" void {0}(unsigned blocks, unsigned threads, unsigned long shared, int together,
                    void** args) {{
  emulated::launch(blocks, threads, shared, together, [=] {{ emulated::call({1}, args); }});
}}
"""


class Unavailable(Exception):
    """There is no compiler of C++."""


def compiler() -> str:
    """The compiler's path. Raises Unavailable."""
    found = shutil.which("g++")
    if found is None:
        raise Unavailable("there is no g++")
    return found


@cache
def library(file: str, options: Options) -> Any:
    """The kernels of a file, and the instances of its templates that it lists, each under its
    `launcher`. Raises Unavailable."""
    code = _with_headers(file, set())
    code = _DYNAMIC.sub(r"\1* \2 = (\1*)emulated::block->shared;", code)
    kernels = dict.fromkeys((*_KERNEL.findall(code), *instances(file)))
    launches = "".join(_LAUNCH.format(launcher(kernel), kernel) for kernel in kernels)
    text = f'#include "emulated.h"\n{code}\n{launches}'
    macros = [option for option in options if option.startswith("-D")]
    made_of = "\n".join((text, (HERE / "emulated.h").read_text(), *FLAGS, *macros))
    folder = Path(tempfile.gettempdir()) / f"lpma-emulated-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{hashlib.sha256(made_of.encode()).hexdigest()[:24]}.so"
    if not path.exists():
        _compile(text, macros, path)
    return ctypes.CDLL(os.fspath(path))


def launcher(kernel: str) -> str:
    """The name of the function that launches a kernel or an instance, "loop<0, 1>"."""
    return f"launch_{re.sub('[^A-Za-z0-9]+', '_', kernel)}"


def _compile(text: str, macros: list[str], path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        source, made = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
        source.write_text(text)
        command = [compiler(), *FLAGS, *macros, "-o", str(made), str(source)]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        if told.returncode:
            raise RuntimeError(told.stderr[:4000])
        made.replace(path)  # in one step: another process may compile the same


def _with_headers(file: str, seen: set[str]) -> str:
    """A source's text with the headers of ours in place of their includes, each once."""

    def included(match: re.Match[str]) -> str:
        name = match[1]
        if name in seen:
            return ""
        seen.add(name)
        return _with_headers(name, seen)

    text = REPLACED.get(file, ROOT / file).read_text()
    for piece in TAKEN_AWAY:
        text = text.replace(piece, "")
    return _INCLUDE.sub(included, text.replace("#pragma once", ""))
