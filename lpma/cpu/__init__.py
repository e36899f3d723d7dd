"""The CPU runtime that the store and the algorithms share: compiling, threads, atomics, search."""
