"""CUDA sources as the compiler gets them: a file, what it includes, and the options.

Sources are named from the folder that holds the three packages, as imports are: a file is
"algorithms/core/cooperative.cu", and includes say `#include "lpma/cuda/grid.cuh"`. So a header is
found from anywhere, and no two of the same name can be mistaken for each other.

A file with templates lists the instances that the host launches, below its opening words:

    // Instances: search<false>, search<true>
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

Options = tuple[str, ...]

_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
_INSTANCES = re.compile(r"^// Instances: .*(?:\n//   .*)*", re.MULTILINE)
_INSTANCE = re.compile(r"\w+<[^>]*>")


def given(file: str, options: Options = ()) -> tuple[str, Options]:
    """(code, options) that the compiler is given for a source, `options` being its own, such as
    "-DWIDTH=8". The code opens with a hash of all headers that it includes: CuPy's cache keys on
    the code alone, and would miss an edited header."""
    code = (ROOT / file).read_text()
    mark = hashlib.sha256("".join(_headers(code)).encode()).hexdigest()
    return f"// headers: {mark}\n{code}", ("--std=c++17", f"-I{ROOT}", *options)


def instances(file: str) -> tuple[str, ...]:
    """The instances of templates that a file lists, by their C++ names."""
    listed = _INSTANCES.search((ROOT / file).read_text())
    return tuple(_INSTANCE.findall(listed[0])) if listed else ()


def _headers(code: str) -> list[str]:
    """The text of every header of ours that the code includes, directly or not, by name."""
    found: dict[str, str] = {}
    pending = _INCLUDE.findall(code)
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = (ROOT / name).read_text()
            pending += _INCLUDE.findall(found[name])
    return [found[name] for name in sorted(found)]
