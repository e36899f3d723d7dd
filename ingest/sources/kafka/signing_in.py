"""Signing in to Kafka with tokens: OAuth 2.0 client credentials, and AWS's IAM for MSK.

    sasl_mechanism = OAUTHBEARER                 sasl_mechanism = AWS_MSK_IAM
    sasl_oauth_token_endpoint = https://…        security_protocol = SASL_SSL
    sasl_oauth_client_id = graph                 (credentials and region as botocore finds them)
    sasl_oauth_client_secret_file = …
    sasl_oauth_scope = kafka                     may be left out

The token is asked for as RFC 6749 says in 4.4, with the client's id and secret in the header, and
used until a minute before it expires. kafka-python asks for it whenever it connects, on its own
thread, so an answer is waited for no longer than `TIMEOUT_S`. An endpoint that is away counts as
brokers that are away; a refusal ends at once. No message shows the secret or a token.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote_plus, urlencode, urlsplit
from urllib.request import Request, urlopen

from lpma.dependencies import how_to_install

from ...errors import AwayError, SourceError

from kafka.net.sasl.oauth import AbstractTokenProvider  # isort: skip

TIMEOUT_S = 5.0
MARGIN_S = 60.0  # before a token expires, when a new one is asked for
ASSUMED_S = 300.0  # that a token is good for, if the answer does not say
MAX_ANSWER_BYTES = 1 << 20

ENDPOINT, CLIENT_ID, CLIENT_SECRET, SCOPE = OAUTH = (
    "sasl_oauth_token_endpoint", "sasl_oauth_client_id", "sasl_oauth_client_secret",
    "sasl_oauth_scope",
)  # fmt: skip
_TOKEN_PROVIDER = "sasl_oauth_token_provider"


def with_sign_in(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with a provider of tokens in place of ours that make one. Raises SourceError if
    what a mechanism needs is not there."""
    given = dict(settings)
    mechanism = given.get("sasl_mechanism")
    ours = {name: given.pop(name) for name in OAUTH if name in given}
    if mechanism == "AWS_MSK_IAM":
        _check_iam(given)
    if ours and mechanism != "OAUTHBEARER":
        raise SourceError(
            f"Kafka settings: {next(iter(ours))} goes with sasl_mechanism OAUTHBEARER"
        )
    if mechanism == "OAUTHBEARER" and _TOKEN_PROVIDER not in given:
        if missing := [name for name in (ENDPOINT, CLIENT_ID, CLIENT_SECRET) if not ours.get(name)]:
            raise SourceError(f"Kafka settings: OAUTHBEARER needs {', '.join(missing)}")
        given[_TOKEN_PROVIDER] = ClientCredentials(
            ours[ENDPOINT], ours[CLIENT_ID], ours[CLIENT_SECRET], ours.get(SCOPE),
            cafile=given.get("ssl_cafile"),
        )  # fmt: skip
    return given


def _check_iam(settings: Mapping[str, Any]) -> None:
    if settings.get("security_protocol") != "SASL_SSL":
        raise SourceError("Kafka settings: AWS_MSK_IAM needs security_protocol = SASL_SSL")
    if find_spec("botocore") is None:
        raise SourceError(f"Kafka settings: AWS_MSK_IAM needs botocore: {how_to_install('msk')}")
    from botocore.session import Session

    session = Session()
    if not session.get_config_variable("region"):
        raise SourceError(
            "Kafka settings: AWS_MSK_IAM: no region: set AWS_DEFAULT_REGION to the cluster's"
        )


class ClientCredentials(AbstractTokenProvider):
    """Tokens for a client that signs in as itself. cafile: authorities that are trusted beside the
    system's. Raises SourceError for an endpoint that is not https, or http on this machine."""

    def __init__(
        self,
        endpoint: str,
        client_id: str,
        client_secret: str,
        scope: str | None = None,
        *,
        cafile: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        parts = urlsplit(endpoint)
        is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
            raise SourceError(f"{ENDPOINT}: expected https://…, so that the secret stays secret")
        self._endpoint = endpoint
        self._where = f"{parts.scheme}://{parts.hostname}{parts.path}"
        pair = f"{quote_plus(client_id)}:{quote_plus(client_secret)}"
        self._authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
        self._asks = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
        self._cafile = cafile
        self._clock = clock
        self._lock = threading.Lock()
        self._token, self._good_until = "", -float("inf")

    def token(self) -> str:
        """A token that is good for a while. Raises AwayError if the endpoint does not answer,
        SourceError if it refuses."""
        with self._lock:
            if self._clock() >= self._good_until:
                asked = self._clock()
                answer = self._answer()
                token, seconds = answer.get("access_token"), answer.get("expires_in", ASSUMED_S)
                if not isinstance(token, str) or not isinstance(seconds, int | float):
                    raise SourceError(f"{self._where}: the answer holds no access_token")
                margin = min(MARGIN_S, seconds / 2)
                self._token, self._good_until = token, asked + seconds - margin
            return self._token

    def _answer(self) -> dict[str, Any]:
        request = Request(
            self._endpoint,
            urlencode(self._asks).encode(),
            {"Authorization": self._authorization, "Accept": "application/json"},
        )
        try:
            trusted = ssl.create_default_context()
            if self._cafile is not None:
                trusted.load_verify_locations(self._cafile)
            with urlopen(request, timeout=TIMEOUT_S, context=trusted) as response:
                answer = json.loads(response.read(MAX_ANSWER_BYTES))
        except HTTPError as error:
            kind = AwayError if error.code >= 500 or error.code == 429 else SourceError
            raise kind(f"{self._where}: no token: {_reason(error)}") from None
        except ssl.SSLError as error:
            raise SourceError(f"{self._where}: no token: {error.reason}") from None
        except OSError as error:  # URLError is one
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLError):
                raise SourceError(f"{self._where}: no token: {reason.reason}") from None
            raise AwayError(f"{self._where}: no token: {reason}") from None
        except ValueError:
            raise SourceError(f"{self._where}: no token: the answer is not JSON") from None
        return answer if isinstance(answer, dict) else {}


def _reason(error: HTTPError) -> str:
    """What the endpoint says is wrong: RFC 6749, 5.2."""
    try:
        said = json.loads(error.read(MAX_ANSWER_BYTES))
        return f"{said['error']}: {said.get('error_description', error.reason)}"[:500]
    except (ValueError, KeyError, TypeError, OSError):
        return f"{error.code} {error.reason}"
