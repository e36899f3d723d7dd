"""Messages on their way: brought to where the receiver's arrays lie, and counted in bytes.

Between devices of one host the receiver copies, device to device. A carrier that goes through the
host (between hosts) sends NumPy's arrays: `on_host`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import array_module, on_device, to_host

from ...arrays import Array
from .types import Message, Messages


def brought(beside: Array, messages: Messages) -> Messages:
    """The same messages, on the device of `beside`, which REQUIRES to be the current one."""
    return [None if one is None else tuple(_to(beside, array) for array in one) for one in messages]


def _to(beside: Array, array: Array) -> Array:
    if not on_device(beside):
        return np.asarray(to_host(array))
    if on_device(array) and array.device == beside.device:
        return array
    if on_device(array):
        return array.copy()  # CuPy copies to the current device
    xp: Any = array_module(beside)
    copied: Array = xp.asarray(array)
    return copied


def on_host(messages: Messages) -> Messages:
    """The same messages in NumPy's arrays."""
    return [None if one is None else tuple(to_host(array) for array in one) for one in messages]


def size_bytes(message: Message | None) -> int:
    """How many bytes a message's arrays have."""
    return 0 if message is None else sum(int(array.nbytes) for array in message)
