"""Signing in with tokens: OAuth's client credentials beside a server of our own and a real broker,
and AWS's IAM beside botocore's signer."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

import ingest
from ingest import KafkaSink, KafkaSource, SourceError
from ingest.errors import AwayError
from ingest.sources.kafka.client import checked_settings
from ingest.sources.kafka.config import read_settings
from ingest.sources.kafka.signing_in import ClientCredentials
from tests.support.broker import Cluster
from tests.support.waiting import HANGS_S

SECRET = "s3cret:&%"


def unsecured(lifetime_s: float) -> str:
    """A token that Kafka's example of a validator takes: a JWT without a signature."""
    now = time.time()
    claims = {"sub": "graph", "iat": now, "exp": now + lifetime_s}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


class Endpoint:
    """A token endpoint that knows one client."""

    def __init__(self) -> None:
        self.asked: list[dict[str, list[str]]] = []
        self.status, self.body = 200, b""  # body: what is answered instead of a token
        self.lifetime_s: float | None = 3600.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                outer.asked.append(parse_qs(body))
                outer.authorization = self.headers["Authorization"]
                answer = outer.body or outer.token().encode()
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self.authorization = ""
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/oauth/token"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def token(self) -> str:
        answer: dict[str, Any] = {"access_token": unsecured(3600), "token_type": "bearer"}
        return json.dumps(answer | ({} if self.lifetime_s is None else {
            "expires_in": self.lifetime_s
        }))  # fmt: skip


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_asks_as_the_standard_says(endpoint: Endpoint) -> None:
    token = ClientCredentials(endpoint.url, "my client", SECRET, "kafka read").token()
    assert token.count(".") == 2
    assert endpoint.asked == [{"grant_type": ["client_credentials"], "scope": ["kafka read"]}]
    kind, _, pair = endpoint.authorization.partition(" ")
    assert (kind, base64.b64decode(pair)) == ("Basic", b"my+client:s3cret%3A%26%25")


@pytest.mark.parametrize(("lifetime_s", "good_s"), [(3600.0, 3540.0), (90.0, 45.0), (None, 240.0)])
def test_a_token_is_used_until_shortly_before_it_expires(
    endpoint: Endpoint, lifetime_s: float | None, good_s: float
) -> None:
    now = 100.0
    endpoint.lifetime_s = lifetime_s
    credentials = ClientCredentials(endpoint.url, "c", SECRET, clock=lambda: now)
    first = credentials.token()
    now += good_s - 1
    assert credentials.token() == first
    assert len(endpoint.asked) == 1
    now += 1
    credentials.token()
    assert len(endpoint.asked) == 2


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (401, b'{"error": "invalid_client"}', SourceError, "invalid_client"),
        (400, b'{"error": "invalid_scope", "error_description": "no such scope"}', SourceError,
         "invalid_scope: no such scope"),
        (404, b"<html>", SourceError, "404"),
        (503, b"", AwayError, "503"),
        (429, b"{}", AwayError, "429"),
        (200, b"[1]", SourceError, "access_token"),
        (200, b'{"access_token": 5}', SourceError, "access_token"),
        (200, b"<html>", SourceError, "not JSON"),
    ],
)  # fmt: skip
def test_no_token(
    endpoint: Endpoint, status: int, body: bytes, kind: type[Exception], says: str
) -> None:
    endpoint.status, endpoint.body = status, body or b" "
    with pytest.raises(kind, match=re.escape(says)) as caught:
        ClientCredentials(endpoint.url, "c", SECRET).token()
    assert type(caught.value) is kind
    assert SECRET not in str(caught.value)


def test_an_endpoint_that_is_away_may_come_back(endpoint: Endpoint) -> None:
    endpoint.server.shutdown()
    endpoint.server.server_close()
    with pytest.raises(AwayError, match="no token"):
        ClientCredentials(endpoint.url, "c", SECRET).token()


SIGN_IN = {
    "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER",
    "sasl_oauth_client_id": "graph", "sasl_oauth_client_secret": SECRET,
    "sasl_oauth_token_endpoint": "https://sign.in/token",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sasl_oauth_client_id": ""}, "needs sasl_oauth_client_id"),
        ({"sasl_mechanism": "PLAIN"}, "goes with sasl_mechanism"),
        ({"sasl_oauth_token_endpoint": "http://sign.in/token"}, "expected https"),
        ({"sasl_oauth_secret": "x"}, "cannot be set here"),
    ],
)
def test_settings_that_make_no_sense(change: dict[str, str], says: str) -> None:
    with pytest.raises(SourceError, match=says) as caught:
        checked_settings(SIGN_IN | change)
    assert SECRET not in str(caught.value)


def test_settings_in_a_file(tmp_path: Path, endpoint: Endpoint) -> None:
    (tmp_path / "secret").write_text(SECRET + "\n")
    lines = SIGN_IN | {"sasl_oauth_token_endpoint": endpoint.url}
    del lines["sasl_oauth_client_secret"]
    lines["sasl_oauth_client_secret_file"] = "secret"
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
    made = checked_settings(read_settings(path))
    assert made["sasl_oauth_token_provider"].token()
    assert checked_settings(made) == made


def test_a_broker_lets_in_who_has_a_token(kafka: Cluster, endpoint: Endpoint) -> None:
    settings = SIGN_IN | {"sasl_oauth_token_endpoint": endpoint.url}
    topic, bootstrap = kafka.topic(), kafka.sasl_bootstrap
    assert bootstrap is not None
    with KafkaSink(bootstrap, settings=settings, patience=HANGS_S) as sink:
        sink.produce_many(topic, [ingest.encode_row(1, 2)])
    with KafkaSource(bootstrap, [topic], settings=settings) as source:
        while not source.at_end():
            source.poll(10, 0.1)
        assert source.positions() == {ingest.Partition(topic, 0): 1}


def test_a_refused_client_is_no_outage(kafka: Cluster, endpoint: Endpoint) -> None:
    endpoint.status, endpoint.body = 401, b'{"error": "invalid_client"}'
    assert kafka.sasl_bootstrap is not None
    settings = SIGN_IN | {"sasl_oauth_token_endpoint": endpoint.url}
    with pytest.raises(SourceError, match="invalid_client") as caught:
        KafkaSource(kafka.sasl_bootstrap, ["any"], settings=settings, patience=HANGS_S)
    assert not isinstance(caught.value, AwayError)
    assert SECRET not in str(caught.value)


# AWS ----------------------------------------------------------------------------------------

MSK = {"security_protocol": "SASL_SSL", "sasl_mechanism": "AWS_MSK_IAM"}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize("token", [None, "a+session/token=="])
def test_iam_signs_as_botocore_does(monkeypatch: pytest.MonkeyPatch, token: str | None) -> None:
    from botocore.auth import SigV4QueryAuth
    from botocore.awsrequest import AWSRequest
    from botocore.session import Session
    from kafka.net.sasl.msk import SaslMechanismAwsMskIam

    if token is not None:
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    host = "b-1.graph.kafka.eu-west-1.amazonaws.com"
    settings = checked_settings(MSK)
    said = json.loads(SaslMechanismAwsMskIam(host=host, **settings).auth_bytes())

    class At(SigV4QueryAuth):
        """Signs as at the time that was said."""

        def add_auth(self, request: Any) -> None:
            request.context["timestamp"] = said["x-amz-date"]
            self._modify_request_before_signing(request)
            canonical = self.canonical_request(request)
            signature = self.signature(self.string_to_sign(request, canonical), request)
            self._inject_signature_to_request(request, signature)

        def payload(self, request: Any) -> str:
            return "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # of nothing

    request = AWSRequest("GET", f"https://{host}/", params={"Action": "kafka-cluster:Connect"})
    credentials = Session().get_credentials().get_frozen_credentials()
    At(credentials, "kafka-cluster", "eu-west-1", expires=900).add_auth(request)
    expected = dict(parse_qsl(urlsplit(request.url).query))
    assert said["x-amz-signature"] == expected["X-Amz-Signature"]
    assert said["x-amz-credential"] == expected["X-Amz-Credential"]
    assert said.get("x-amz-security-token") == token
    signed = datetime.strptime(said["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert abs((datetime.now(UTC) - signed).total_seconds()) < HANGS_S


@pytest.mark.usefixtures("aws")
def test_iam_needs_tls_and_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match="security_protocol = SASL_SSL"):
        checked_settings(MSK | {"security_protocol": "SASL_PLAINTEXT"})
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(SourceError, match="AWS_DEFAULT_REGION"):
        checked_settings(MSK)


def test_iam_without_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    from ingest.sources.kafka import signing_in

    monkeypatch.setattr(signing_in, "find_spec", lambda _: None)
    with pytest.raises(SourceError, match=r"needs botocore: .*\[msk\]"):
        checked_settings(MSK)
