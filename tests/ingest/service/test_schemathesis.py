"""Schemathesis asks every endpoint of a service what openapi.json allows, and what it does not.

The service is a stream's, of small bounds, so that what is drawn meets them. No request may be
answered with an error of the service itself, nor with a status, a form or a body that is not
documented; a body of another shape than the schema's must be refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from ingest.service.context import Limits
from tests.conftest import soak
from tests.ingest.service.test_openapi import DOCUMENT

ENDLESS = ("/v1/events",)
CHECKS = (
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
)
BINARY = ("application/msgpack", "application/vnd.apache.arrow.stream")


@schemathesis.serializer(*BINARY)
def as_bytes(context: Any, value: Any) -> bytes:
    """What is drawn for a binary body is sent as it is."""
    return value if isinstance(value, bytes) else str(value).encode()


for form in BINARY:
    schemathesis.openapi.media_type(form, st.binary(max_size=64))


def operations() -> list[tuple[str, str]]:
    return [
        (path, method)
        for path, methods in DOCUMENT["paths"].items()
        for method in methods
        if path not in ENDLESS
    ]


@pytest.mark.parametrize("path, method", operations(), ids=lambda word: word)
def test_every_endpoint(serve_stream: Callable[..., Any], path: str, method: str) -> None:
    served = serve_stream(limits=Limits(page_rows=3, max_rows=50), predecessors=True)
    served.produce([1, 1, 1, 1, 2], [2, 3, 4, 5, 3])
    served.settle()
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    schema.config.update(base_url=served.url)
    session = requests.Session()
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        cases = schema[path][method.upper()].as_strategy(generation_mode=mode)

        @hypothesis.seed(20)
        @hypothesis.settings(
            max_examples=soak(12, 2000), database=None, deadline=None,
            suppress_health_check=list(HealthCheck), derandomize=False,
        )  # fmt: skip
        @given(case=cases)
        def drawn(case: Any) -> None:
            case.call_and_validate(session=session, checks=list(CHECKS), timeout=60)

        try:
            drawn()
        except hypothesis.errors.Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE, "any text is a vertex, so none is wrong"
    assert not served.failures
