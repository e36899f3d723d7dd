"""A schema registry asked over HTTP: signing in, TLS, what it refers to, and what goes wrong."""

from __future__ import annotations

import base64
import ssl
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest import PipelineError, SchemaRegistry, SourceError
from ingest.errors import AwayError
from ingest.registry.client import UnknownSchema
from tests.ingest.service.test_server import certificate
from tests.support.schema_registry import Registry, served

SECRET = "planted-9b1f"


@pytest.fixture
def registry() -> Iterator[Registry]:
    with served() as found:
        yield found


def test_a_schema_and_what_it_refers_to(registry: Registry) -> None:
    registry.add('"string"', subject="inner")
    refers = [{"name": "x.Inner", "subject": "inner", "version": 1}]
    registry.add('"int"', subject="middle/of it", references=refers)
    both = [{"name": "x.Middle", "subject": "middle/of it", "version": 1}, *refers]
    id = registry.add('"long"', references=both)
    found = SchemaRegistry(registry.url + "/").schema(id)
    assert (found.id, found.kind, found.text) == (id, "AVRO", '"long"')
    assert found.references == ('"string"', '"int"')
    assert registry.asked[-1] == "/subjects/inner/versions/1"
    assert len(registry.asked) == 3  # each once


def test_references_in_a_circle_end(registry: Registry) -> None:
    refers = [{"name": "x.A", "subject": "a", "version": 1}]
    id = registry.add('"int"', subject="a", references=refers)
    assert SchemaRegistry(registry.url).schema(id).references == ('"int"',)


def test_what_is_not_there_is_unknown(registry: Registry) -> None:
    with pytest.raises(UnknownSchema, match="it is not in the registry"):
        SchemaRegistry(registry.url).schema(7)
    for subject, version in (("gone", 1), ("there", 2)):
        registry.add('"int"', subject="there")
        refers = [{"name": "x", "subject": subject, "version": version}]
        id = registry.add('"long"', references=refers)
        with pytest.raises(UnknownSchema, match=f"it refers to version {version} of '{subject}'"):
            SchemaRegistry(registry.url).schema(id)


@pytest.mark.parametrize(
    "settings, wanted",
    [
        ({"user": "ann", "password": SECRET}, f"ann:{SECRET}"),
        ({"user": "żółć", "password": ":"}, "żółć::"),
        ({"user": "ann"}, "ann:"),
    ],
)
def test_user_and_password(registry: Registry, settings: dict[str, str], wanted: str) -> None:
    id = registry.add('"int"')
    registry.authorization = f"Basic {base64.b64encode(wanted.encode()).decode()}"
    assert SchemaRegistry(registry.url, settings=settings).schema(id).text == '"int"'


def test_a_token(registry: Registry) -> None:
    id = registry.add('"int"')
    registry.authorization = f"Bearer {SECRET}"
    assert SchemaRegistry(registry.url, settings={"token": SECRET}).schema(id).text == '"int"'


def test_a_refusal_is_told_at_once_and_without_the_secret(registry: Registry) -> None:
    registry.authorization = "Basic other"
    asked = SchemaRegistry(registry.url, settings={"user": "ann", "password": SECRET})
    with pytest.raises(SourceError, match="401 Unauthorized: give user and password") as error:
        asked.schema(1)
    assert not isinstance(error.value, AwayError)
    told = "".join(traceback.format_exception(error.value)) + repr(asked)
    assert SECRET not in told
    assert base64.b64encode(f"ann:{SECRET}".encode()).decode() not in told


@pytest.mark.parametrize(
    "fault, kind, why",
    [
        ((500, b"{}"), AwayError, "500"),
        ((503, b"<html>"), AwayError, "503"),
        ((429, b"{}"), AwayError, "429"),
        ((200, b"<html>welcome</html>"), AwayError, "not JSON"),
        ((200, b"[" * 100_000), AwayError, "not JSON"),
        ((200, b"[]"), AwayError, "not a schema"),
        ((200, b'{"schema": 7}'), AwayError, "not a schema"),
        ((200, b'{"schema": "", "references": [{}]}'), AwayError, "a reference without"),
        ((403, b"{}"), SourceError, "403"),
        ((404, b"<html>nothing here</html>"), SourceError, "is the URL right"),
        ((404, b'{"error_code": 404}'), SourceError, "is the URL right"),
        ((302, b""), SourceError, "redirects to http://elsewhere/: give the URL"),
    ],
)
def test_bad_answers(registry: Registry, fault: Any, kind: type[Exception], why: str) -> None:
    registry.fault = lambda path: fault
    registry.headers = {"Location": "http://elsewhere/"}
    with pytest.raises(kind, match=why) as error:
        SchemaRegistry(registry.url).schema(1)
    assert type(error.value) is kind


def test_a_registry_that_is_away_or_slow() -> None:
    with served() as registry:
        url = registry.url
    with pytest.raises(AwayError, match="refused"):
        SchemaRegistry(url).schema(1)
    with served() as registry:
        late = threading.Event()

        def waits(path: str) -> None:
            late.wait(60)

        registry.fault = waits
        with pytest.raises(AwayError, match="timed out"):
            SchemaRegistry(registry.url, timeout=0.05).schema(1)
        late.set()


def test_no_redirection_is_followed(registry: Registry) -> None:
    """It could carry the password to another host."""
    with served() as other:
        registry.fault = lambda path: (307, b"")
        registry.headers = {"Location": f"{other.url}/schemas/ids/1"}
        with pytest.raises(SourceError, match="redirects"):
            SchemaRegistry(registry.url, settings={"token": SECRET}).schema(1)
        assert not other.asked


@pytest.mark.parametrize(
    "url, settings, why",
    [
        ("registry:8081", {}, "expected a URL"),
        ("ftp://registry", {}, "expected a URL"),
        (None, {}, "expected a URL"),
        (f"https://ann:{SECRET}@registry", {}, "do not stand in the URL"),
        ("http://registry", {"user": "a", "password": "b"}, "expected https"),
        ("http://registry", {"token": "a"}, "expected https"),
        ("https://registry?x=1", {}, "without"),
        ("https://registry", {"pasword": SECRET}, "no setting 'pasword'"),
        ("https://registry", {"password": SECRET}, "needs a user"),
        ("https://registry", {"user": "a", "token": SECRET}, "not both"),
        ("https://registry", {"token": f"{SECRET}\nX: y"}, "text of one line"),
        ("https://registry", {"ssl_keyfile": "k"}, "needs ssl_certfile"),
    ],
)
def test_settings_that_make_no_sense(url: Any, settings: Any, why: str) -> None:
    with pytest.raises(PipelineError, match=why) as error:
        SchemaRegistry(url, settings=settings)
    assert SECRET not in str(error.value)


def test_tls(tmp_path: Path) -> None:
    own, foreign = tmp_path / "own", tmp_path / "foreign"
    own.mkdir()
    foreign.mkdir()
    cert, key = certificate(own)
    other, other_key = certificate(foreign)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    with served(tls=tls) as registry:
        id = registry.add('"int"')
        trusting = SchemaRegistry(registry.url, settings={"ssl_cafile": str(cert)})
        assert trusting.schema(id).text == '"int"'
        for settings in ({}, {"ssl_cafile": str(other)}):
            with pytest.raises(SourceError, match="CERTIFICATE_VERIFY_FAILED") as error:
                SchemaRegistry(registry.url, settings=settings).schema(id)
            assert not isinstance(error.value, AwayError)
        for name in ("ssl_cafile", "ssl_certfile"):
            with pytest.raises(SourceError, match="ssl_… cannot be used: No such file"):
                SchemaRegistry(registry.url, settings={name: "none"}).schema(id)
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(other)
    with served(tls=tls) as registry:
        id = registry.add('"int"')
        settings = {"ssl_cafile": str(cert), "ssl_certfile": str(other),
                    "ssl_keyfile": str(other_key)}  # fmt: skip
        assert SchemaRegistry(registry.url, settings=settings).schema(id).text == '"int"'
        del settings["ssl_certfile"], settings["ssl_keyfile"]
        with pytest.raises(SourceError):
            SchemaRegistry(registry.url, settings=settings).schema(id)


def test_a_probe_counts_subjects(registry: Registry) -> None:
    registry.add('"int"', subject="a")
    assert SchemaRegistry(registry.url).probe() == {"subjects": 1}
    registry.fault = lambda path: (200, b"{}")
    with pytest.raises(SourceError, match="not as a schema registry"):
        SchemaRegistry(registry.url).probe()
