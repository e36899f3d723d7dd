"""`lpma compile`: compile everything beforehand."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from lpma.display.words import size_of

from ._console import JsonOption, Screen, emit, failing_in_one_line, show

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
    if as_json:
        emit(document)
    else:
        size = size_of(cache.size_bytes())
        show("compiled", {**document, "bytes": size, "seconds": f"{document['seconds']:.1f}"})
