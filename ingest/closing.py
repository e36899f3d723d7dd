"""What holds a file or a connection is closed at the end of a `with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """`with` gives the object itself, and closes it."""

    @abstractmethod
    def close(self) -> None:
        """Release what is held. A second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
