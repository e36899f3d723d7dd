"""The decoder never crashes: thirty thousand mutated records, a million nightly."""

from __future__ import annotations

import json
import random
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import soak
from tests.support import fuzzing


@pytest.mark.parametrize(
    "wanted",
    [30_000, pytest.param(1_000_000, marks=[pytest.mark.soak, pytest.mark.nightly])],
)
def test_mutated_records_are_refused_or_valid(wanted: int) -> None:
    wanted = soak(wanted, 20 * wanted)
    mutations, valid, memory = fuzzing.run_many(wanted)
    assert mutations >= wanted
    assert 0.02 * mutations < valid < 0.9 * mutations
    # Both processes have seen all there is to load after some chunks; no record adds to that.
    assert max(memory) < max(memory[:4]) + 64 * 1024


def test_a_seed_makes_the_same_mutations_again() -> None:
    samples = fuzzing.corpus()

    def some() -> list[bytes]:
        rng = random.Random(7)
        return [fuzzing.mutated(samples[i % len(samples)][1], samples, rng) for i in range(200)]

    assert some() == some()


def test_every_sample_is_valid_and_comes_back() -> None:
    for name, data in fuzzing.corpus():
        assert fuzzing.check(fuzzing.FORMS[name], data), name


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    for form in fuzzing.FORMS.values():
        fuzzing.check(form, data)


FIELDS = [
    "rows", "src", "dst", "weight", "time", "kind", "query", "id", "steps", "source", "seq",
    "src_text", "src_ends", "src_number", "dst_text", "dst_ends", "dst_number", "src_signed",
    "dst_signed", "ids", "ids_text", "ids_ends", "version", "found", "times", "reply", "topic",
    "partition", "figure", "run", "part", "parts", "vertex", "old", "new",
    "user", "item", "at", "what",
]  # fmt: skip
scalars: Any = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=9)
    | st.sampled_from(["append", "delete", "add_vertex", "edge", "hops", "degree", "successors"])
)  # fmt: skip
values = st.recursive(
    scalars | st.binary(max_size=16),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner),
)
json_values = st.recursive(
    scalars | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner),
)


@settings(max_examples=300)
@given(values)
def test_any_msgpack(value: Any) -> None:
    for form in fuzzing.FORMS.values():
        fuzzing.check(form, msgpack.packb(value))


@settings(max_examples=300)
@given(json_values)
def test_any_json(value: Any) -> None:
    for name in ("json", "named json", "result line"):
        fuzzing.check(fuzzing.FORMS[name], json.dumps(value).encode())
