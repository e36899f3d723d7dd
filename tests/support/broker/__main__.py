"""`python -m tests.support.broker` fetches Kafka and prepares it, where that was not done."""

import sys

from tests.support.broker import Unavailable, prepare

try:
    prepare()
except Unavailable as error:
    print(f"no Kafka for the tests, those that need it are skipped: {error}", file=sys.stderr)
