"""A graph that is spread over shards, as the public functions of this package know it: they hand
over to it. `algorithms.sharded` makes one."""

from __future__ import annotations

from typing import Any


class Spread:
    """What a public function is given in place of a Snapshot: it is asked for the same."""

    def computed(self, algorithm: str, **arguments: Any) -> Any:
        """What the public function `algorithm` returns for these arguments."""
        raise NotImplementedError
