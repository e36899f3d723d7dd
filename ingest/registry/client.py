"""Asks a schema registry over HTTP, as Confluent's speaks it and others do (Apicurio, Karapace,
Redpanda).

    GET /schemas/ids/7                      the schema with that id, its kind, what it refers to
    GET /subjects/NAME/versions/VERSION     a schema that another refers to

What goes wrong, and what becomes of it:

    refused, in time, 5xx, 429, no JSON     AwayError: whoever asks waits, and asks again
    404 with an error_code of a registry's  UnknownSchema: the answer is that there is none
    401, 403, TLS, 404 without such a code  SourceError: somebody has to correct the settings

User and password, or a token, are sent over https alone, or to this machine; no redirection is
followed, which could carry them elsewhere, and no message shows them.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import (
    BaseHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
    build_opener,
)

from ..errors import AwayError, PipelineError, SourceError

TIMEOUT_S = 5.0
PATIENCE_S = 60.0
MAX_ANSWER_BYTES = 8 << 20
MAX_REFERENCES = 100
SETTINGS = ("user", "password", "token", "ssl_cafile", "ssl_certfile", "ssl_keyfile",
            "ssl_password")  # fmt: skip
_SECRETS = ("password", "token", "ssl_password")
_NO_SUCH = (40401, 40402, 40403)  # subject, version, schema


class UnknownSchema(Exception):
    """The registry says that it has no such schema."""


@dataclass(frozen=True)
class Schema:
    """A schema as the registry has it. kind: "AVRO", "JSON", "PROTOBUF". references: the texts of
    those that it refers to, each after what it refers to itself."""

    id: int
    kind: str
    text: str
    references: tuple[str, ...] = ()


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class SchemaRegistry:
    """A schema registry, by its URL. Nothing is asked before it is needed.

    settings: how to sign in, and TLS: user and password, or token; ssl_cafile, for authorities that
    are trusted beside the system's; ssl_certfile, ssl_keyfile, ssl_password. timeout: seconds that
    an answer may take. patience: for how many seconds a pipeline goes on asking a registry that is
    away before it raises SourceError.

    Raises PipelineError for a URL or settings that make no sense.

    >>> ingest.SchemaRegistry("https://registry:8081", settings={"user": "graph", "password": "x"})
    SchemaRegistry('https://registry:8081')
    """

    def __init__(
        self,
        url: str,
        *,
        settings: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT_S,
        patience: float = PATIENCE_S,
    ) -> None:
        own = dict(settings or {})
        self.url = _checked_url(url, own)
        if not timeout > 0 or not patience >= 0:
            raise PipelineError("schema_registry: timeout is positive, patience not negative")
        self.timeout, self.patience = timeout, patience
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if "token" in own:
            self._headers["Authorization"] = f"Bearer {own['token']}"
        elif "user" in own:
            pair = f"{own['user']}:{own.get('password', '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        self._settings = own
        self._opener: OpenerDirector | None = None

    def __repr__(self) -> str:
        return f"SchemaRegistry({self.url!r})"

    def schema(self, id: int) -> Schema:
        """The schema with this id. Raises UnknownSchema, AwayError, SourceError."""
        found = self._get(f"/schemas/ids/{id}")
        references: dict[tuple[str, int], str] = {}
        self._refer(found, references, ())
        kind = found.get("schemaType", "AVRO")
        return Schema(id, str(kind), _text(found, self.url), tuple(references.values()))

    def probe(self) -> dict[str, Any]:
        """What the registry says of itself: the kinds of schemas and the number of subjects. Raises
        AwayError, SourceError."""
        subjects = self._ask("/subjects")
        if not isinstance(subjects, list):
            raise SourceError(f"{self.url}: answers, but not as a schema registry does")
        return {"subjects": len(subjects)}

    def _refer(
        self,
        schema: Mapping[str, Any],
        found: dict[tuple[str, int], str],
        within: tuple[tuple[str, int], ...],
    ) -> None:
        """Add what `schema` refers to, each behind what it refers to itself."""
        for each in schema.get("references") or ():
            try:
                key = str(each["subject"]), int(each["version"])
            except (KeyError, TypeError, ValueError):
                raise AwayError(f"{self.url}: a reference without subject and version") from None
            if key in found or key in within:
                continue
            if len(found) + len(within) >= MAX_REFERENCES:
                raise UnknownSchema(f"it refers to more than {MAX_REFERENCES} others")
            path = f"/subjects/{quote(key[0], safe='')}/versions/{key[1]}"
            try:
                one = self._get(path)
            except UnknownSchema:
                raise UnknownSchema(
                    f"it refers to version {key[1]} of {key[0]!r}, which is not in the registry"
                ) from None
            self._refer(one, found, (*within, key))
            found[key] = _text(one, self.url)

    def _get(self, path: str) -> dict[str, Any]:
        found = self._ask(path)
        if not isinstance(found, dict):
            raise AwayError(f"{self.url}{path}: the answer is not a schema")
        return found

    def _ask(self, path: str) -> Any:
        if self._opener is None:
            self._opener = build_opener(_NoRedirect(), *self._tls())
        try:
            request = Request(self.url + path, headers=self._headers)
            with self._opener.open(request, timeout=self.timeout) as response:
                answer = response.read(MAX_ANSWER_BYTES + 1)
        except HTTPError as error:
            raise self._refusal(error, path) from None
        except (OSError, HTTPException) as error:  # URLError is one
            reason = getattr(error, "reason", None) or error
            if isinstance(reason, ssl.SSLError) and not isinstance(reason, ssl.SSLEOFError):
                raise SourceError(f"{self.url}: {reason.reason or reason}") from None
            raise AwayError(f"{self.url}: {reason or type(reason).__name__}") from None
        if len(answer) > MAX_ANSWER_BYTES:
            raise AwayError(f"{self.url}{path}: the answer passes {MAX_ANSWER_BYTES} bytes")
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise AwayError(f"{self.url}{path}: the answer is not JSON") from None

    def _refusal(self, error: HTTPError, path: str) -> Exception:
        """What an answer with a status of its own means."""
        try:
            code = json.loads(error.read(MAX_ANSWER_BYTES))["error_code"]
        except (ValueError, KeyError, TypeError, OSError, HTTPException, RecursionError):
            code = None
        if error.code == 404 and code in _NO_SUCH:
            return UnknownSchema("it is not in the registry")
        if error.code >= 500 or error.code in (408, 429):
            return AwayError(f"{self.url}: {error.code} {error.reason}")
        if error.code in (401, 403):
            return SourceError(
                f"{self.url}: {error.code} {error.reason}: give user and password, or a token, in "
                "registry.settings (in Python: settings={…}), or correct them"
            )
        if 300 <= error.code < 400:
            to = str(error.headers.get("Location", "elsewhere"))[:200]
            return SourceError(f"{self.url}: redirects to {to}: give the URL that answers itself")
        return SourceError(
            f"{self.url}{path}: {error.code} {error.reason}, which no schema registry answers: is "
            "the URL right?"
        )

    def _tls(self) -> list[BaseHandler]:
        if not self.url.startswith("https:"):
            return []
        own = self._settings
        trusted = ssl.create_default_context()
        try:
            if "ssl_cafile" in own:
                trusted.load_verify_locations(own["ssl_cafile"])
            if "ssl_certfile" in own:
                trusted.load_cert_chain(own["ssl_certfile"], own.get("ssl_keyfile"),
                                        own.get("ssl_password", ""))  # fmt: skip
        except (OSError, ValueError) as error:  # SSLError is one
            said = getattr(error, "strerror", None) or getattr(error, "reason", None) or error
            raise SourceError(f"schema registry: a file of ssl_… cannot be used: {said}") from None
        return [HTTPSHandler(context=trusted)]


def checked_registry(registry: Any) -> SchemaRegistry | None:
    """A registry, also by its URL. Raises PipelineError."""
    if registry is None or isinstance(registry, SchemaRegistry):
        return registry
    if isinstance(registry, str):
        return SchemaRegistry(registry)
    raise PipelineError(
        f"schema_registry is {registry!r}: expected a URL or ingest.SchemaRegistry(url, …)"
    )


def _checked_url(url: Any, settings: Mapping[str, Any]) -> str:
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise PipelineError("schema_registry: expected a URL, as http://registry:8081")
    if parts.username is not None or parts.password is not None:
        raise PipelineError(
            f"schema_registry: {parts.scheme}://…@{parts.hostname}: user and password do not stand "
            "in the URL: give them in registry.settings (in Python: settings={…})"
        )
    if parts.query or parts.fragment:
        raise PipelineError("schema_registry: a URL without ? and #")
    for name, value in settings.items():
        if name not in SETTINGS:
            known = ", ".join(SETTINGS)
            raise PipelineError(f"schema_registry: no setting {name!r}: it knows {known}")
        if not isinstance(value, str) or any(ord(c) < 32 for c in value):
            raise PipelineError(f"schema_registry: {name}: expected text of one line")
    if not settings.get("token", "").isascii():
        raise PipelineError("schema_registry: token: expected ASCII")
    if "token" in settings and "user" in settings:
        raise PipelineError("schema_registry: a token, or user and password, not both")
    if "password" in settings and "user" not in settings:
        raise PipelineError("schema_registry: a password needs a user")
    if "ssl_keyfile" in settings and "ssl_certfile" not in settings:
        raise PipelineError("schema_registry: ssl_keyfile needs ssl_certfile")
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme == "http" and not local and {"token", "user"} & settings.keys():
        raise PipelineError(
            "schema_registry: expected https://…, so that what signs in stays secret"
        )
    return url.rstrip("/")


def _text(found: Mapping[str, Any], url: str) -> str:
    if not isinstance(text := found.get("schema"), str):
        raise AwayError(f"{url}: the answer is not a schema")
    return text
