"""Records that are made on every batch: named fields, written once, in an object that can change.

Trick: a dataclass's constructor is a function of Python, which a batch of a thousand edges would
feel; that of a `SimpleNamespace` is not. Type checkers see the fields, as keywords. What a field
that was left out is, stands in the class.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import dataclass_transform


@dataclass_transform(kw_only_default=True)
class Record(SimpleNamespace):
    """The base of such records.

    >>> class Place(Record):
    ...     offset: int
    ...     row: int = 0
    >>> Place(offset=7).row
    0
    >>> Place(offset=7) == Place(offset=7, row=0)
    True
    """

    def __eq__(self, other: object) -> bool:
        """Fields that were left out are compared as well."""
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name) for name in type(self).__annotations__
        )
