"""`lpma compile`: compile everything beforehand."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from lpma.display.words import size_of

from ._console import JsonOption, Screen, failing_in_one_line, report

PERCENT = 100


@failing_in_one_line
def compile(
    device: Annotated[
        str, typer.Option("--device", help="'cpu', or 'cuda' or 'cuda:N' for that GPU's kernels.")
    ] = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Compile all kernels now, on all cores, so that nothing waits for a compiler later."""
    import lpma
    from lpma.cpu import cache

    started = time.perf_counter()
    with Screen() as screen:
        lpma.compile(
            device, lambda done: screen.progress("compile", round(PERCENT * done), PERCENT)
        )
    document = {
        "device": device,
        "directory": str(cache.directory()),
        "bytes": cache.size_bytes(),
        "seconds": time.perf_counter() - started,
    }
    size, seconds = size_of(cache.size_bytes()), f"{document['seconds']:.1f}"
    report(as_json, document, "compiled", {**document, "bytes": size, "seconds": seconds})
