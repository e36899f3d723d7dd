"""Whether vertices go by names, in this release's word for it and in the last one's.

The word is `names=True`, as of `lpma.Graph`. Until the next release `ids="mapped"` says the same,
and `ids="dense"` the contrary. Every call that still takes `ids` translates it here.
"""

from __future__ import annotations

import sys
import warnings

from .errors import IngestError
from .types import Ids


def by_name(names: bool, ids: Ids | None, error: type[IngestError]) -> bool:
    """What `names` says, or `ids`, with a DeprecationWarning. Raises `error` if `names` is no bool,
    if `ids` is none of its words, or if they contradict each other."""
    if not isinstance(names, bool):
        raise error(f"names is {names!r}: expected True or False")
    if ids is None:
        return names
    if ids not in ("dense", "mapped"):
        raise error(f"ids is {ids!r}: leave it out, and say names=True or names=False")
    named = ids == "mapped"
    if names and not named:
        raise error("names=True and ids='dense' contradict each other: leave ids out")
    warnings.warn(
        f"ids={ids!r} goes with the next release: say names={named}",
        DeprecationWarning,
        stacklevel=_level_outside(),
    )
    return named


def _level_outside() -> int:
    """The level of the caller's nearest caller outside this package, as `warnings.warn` counts."""
    frame, level = sys._getframe(1), 1
    package = f"{__package__}."
    while frame.f_back and f"{frame.f_globals.get('__name__')}.".startswith(package):
        frame, level = frame.f_back, level + 1
    return level
