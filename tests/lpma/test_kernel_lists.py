"""The lists of kernels have all that programs call: see lpma/cpu/manifest.py."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Runs what programs do after everything was compiled, and prints what is compiled nevertheless.
SCRIPT = """
from lpma.cpu import compiling
compiling.compile_all()
from tests.support import kernel_lists
for entry in kernel_lists.recorded():
    print(entry)
"""


@pytest.mark.integration
def test_nothing_is_compiled_that_is_not_in_a_list() -> None:
    """If this fails, run `python -m tests.support.kernel_lists`."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, check=True
    )
    assert done.stdout == ""
