"""A broker whose SASL listener speaks TLS, under a certificate of its own for 127.0.0.1."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support.broker import Broker, Unavailable

_KEYSTORE_PASSWORD = "only-of-this-test"

_PROPERTIES = """
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_SSL,CONTROLLER:PLAINTEXT
ssl.keystore.type=PKCS12
ssl.keystore.location={store}
ssl.keystore.password={password}
"""


def tls_broker(directory: Path, certificate: Path) -> Broker:
    """Not started yet. The certificate is written to the file `certificate`, in PEM.

    Raises Unavailable where Java's keytool is missing."""
    if shutil.which("keytool") is None:
        raise Unavailable("keytool, which comes with Java, is not installed")
    directory.mkdir(parents=True, exist_ok=True)
    store = directory / "keys.p12"
    tool = ["keytool", "-keystore", str(store), "-storepass", _KEYSTORE_PASSWORD, "-alias", "kafka"]
    subprocess.run(
        [*tool, "-genkeypair", "-storetype", "PKCS12", "-keyalg", "EC", "-groupname", "secp256r1",
         "-dname", "CN=broker of a test", "-ext", "SAN=ip:127.0.0.1", "-validity", "2"],
        check=True, capture_output=True,
    )  # fmt: skip
    subprocess.run(
        [*tool, "-exportcert", "-rfc", "-file", str(certificate)], check=True, capture_output=True
    )
    properties = _PROPERTIES.format(store=store, password=_KEYSTORE_PASSWORD)
    return Broker(directory / "kafka", properties)
