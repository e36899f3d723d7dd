"""The house's rules that a program can check: `python -m tests.house.rules`, a part of `make lint`.

A rule is a function that takes sources and yields problems, each `FILE:LINE: what is wrong`. What
the rules find in sources that break them is in tests/house/test_rules.py.
"""
