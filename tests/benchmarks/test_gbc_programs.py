"""The GBC paper's program, whole and without each of its parts, against brute force; its truncated
bitmaps."""

from __future__ import annotations

import itertools
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.biclique import gbc as ours
from benchmarks.papers.gbc import GBC, GBL, Program, count
from benchmarks.papers.gbc.truncated import WIDTH, truncated
from lpma.arrays import to_host
from tests.support.bicliques import bipartite_of, brute, edges, left_lists, random_graph

PARTS = Program._fields[1:]
LESS = [{}, *({part: False} for part in PARTS), dict.fromkeys(PARTS, False)]
PROGRAMS = [program._replace(**less) for program in (GBC, GBL) for less in LESS]


@given(graph=edges(), p=st.integers(2, 6), q=st.integers(2, 6))
def test_every_program_counts(device: str, graph: Any, p: int, q: int) -> None:
    b = bipartite_of(device, *graph)
    expected = brute(b, p, q)
    for program in PROGRAMS:
        assert count(b, p, q, program) == expected, program


@pytest.mark.parametrize("p, q", [(2, 2), (3, 5), (5, 3), (4, 4)])
def test_larger_graphs(device: str, p: int, q: int) -> None:
    """Bitmaps of several words, several threads."""
    b = random_graph(device, 150, 200, 4500, seed=p * 10 + q)
    expected = ours.count(b, p, q)
    for program in PROGRAMS:
        assert count(b, p, q, program) == expected, program


@pytest.mark.parametrize("a, b, p, q", [(40, 90, 3, 40), (4, 1100, 3, 400)])
def test_complete_graphs(device: str, a: int, b: int, p: int, q: int) -> None:
    """Counts beyond 2^64; more common neighbours than a block has bins."""
    left, right = np.divmod(np.arange(a * b), b)
    graph = bipartite_of(device, a, b, left.tolist(), right.tolist())
    for program in (GBC, GBL):
        assert count(graph, p, q, program) == comb(a, p) * comb(b, q)


@given(graph=edges(most=80), packed=st.booleans())
def test_truncated_bitmaps(device: str, graph: Any, packed: bool) -> None:
    b = bipartite_of(device, *graph)
    rows = truncated(b.left_indptr, b.left_indices, packed)
    indptr, words, bits = (to_host(a) for a in (rows.indptr, rows.words, rows.bits))
    assert (words.dtype, bits.dtype, indptr.dtype) == (np.uint32, np.uint32, np.int64)
    got = []
    width = WIDTH if packed else 1
    for x, y in itertools.pairwise(indptr.tolist()):
        assert (np.diff(words[x:y].astype(int)) > 0).all()
        pairs = zip(words[x:y].tolist(), bits[x:y].tolist(), strict=True)
        got.append(
            [word * width + i for word, set_ in pairs for i in range(WIDTH) if set_ >> i & 1]
        )
    assert got == left_lists(b)
