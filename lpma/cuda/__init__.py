"""What the store and the algorithms share on CUDA: compiling, launching, scans, search.

Only files named `cuda.py`, `*_cuda.py` and `*.cu`, and `lpma/backend/cuda`, import from here."""
