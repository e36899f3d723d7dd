"""The algorithms on a CUDA device: Python that launches, beside the CUDA C++ that it launches.

Only imported where arrays lie on a device, since it imports CuPy."""
