"""`python -m pytest -p tests.support.emulated.plugin -m gpu tests/lpma/…`: tests that need a device
run on an emulated one. Those with large batches take minutes each."""

from __future__ import annotations

from . import cupy_on_host

cupy_on_host.install()
