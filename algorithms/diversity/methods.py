"""The methods of structural diversity by name, the choice that "auto" makes, and the workers.

"auto" takes listing, which neither builds nor numbers ego networks. It takes extraction

on a device  for a graph of fewer than FEW_EDGES edges whose ego networks have fewer than
             FEW_EGO_EDGES together: extraction fills the device with all of them, while listing
             waits for the largest
on the CPU   in the models core and truss, if the matrices of listing have more than
             WORDS_PER_EGO_EDGE words for each edge of an ego network: hubs with few edges among
             their neighbours

On the CPU triangles, which make three ego edges each, are listed once for either method. A word
costs some 5 ns, and an ego edge of extraction from 50 ns in sparse ego networks to 500 ns in dense
ones in the truss model. With the multiple between, neither choice is wrong by much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..triangles import listed
from ..views.simple import simple
from . import extract, listing, schedule
from .listing import cpu as listing_cpu
from .model import Scorer

Make = Callable[[Any, str, int], Scorer]  # of a graph, a model and k

FEW_EDGES, FEW_EGO_EDGES = 1 << 19, 1 << 23
WORDS_PER_EGO_EDGE = 32


def faster(s: Any, model: str, k: int) -> Scorer:
    """A scorer by the method that "auto" takes."""
    return (_faster_on_device if simple(s).on_device else _faster_on_cpu)(s, model, k)


def _faster_on_device(s: Any, model: str, k: int) -> Scorer:
    if len(simple(s).indices) < 2 * FEW_EDGES:
        scorer = extract.Scorer(s, model, k)
        if int(scorer.egos.edges.sum()) < FEW_EGO_EDGES:
            return scorer
    return listing.Scorer(s, model, k)


def _faster_on_cpu(s: Any, model: str, k: int) -> Scorer:
    if model == "component":
        return listing.Scorer(s, model, k)
    found = listed(s)
    scorer = listing.Scorer(found, model, k)
    ego_edges = int(found.support.sum(dtype=np.int64))
    if listing_cpu.words(scorer.egos) > WORDS_PER_EGO_EDGE * ego_edges:
        return extract.Scorer(found, model, k)
    return scorer


METHODS: Mapping[str, Make] = {
    "auto": faster,
    "listing": listing.Scorer,
    "extract": extract.Scorer,
}


def workers(
    method: str, s: Any, model: str, k: int, devices: Sequence[int] | None = None
) -> list[Scorer]:
    """A scorer for each worker: for each of the CUDA devices, prepared side by side, or without
    devices for each thread that the scorer allows. REQUIRES: the devices can be used."""
    make = METHODS[method]
    if devices is None:
        scorer = make(s, model, k)
        return [scorer] * scorer.threads
    views = schedule.spread(simple(s), devices)
    with ThreadPoolExecutor(len(views)) as pool:  # these threads wait for devices
        return list(pool.map(lambda view: make(view, model, k), views))
