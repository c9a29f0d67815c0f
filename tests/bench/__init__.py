"""Benchmarks: `python -m tests.bench [NAME…] [--json FILE]`. Ratios against a limit measured in the same run.

A benchmark is a module here with NAME, WHAT (one line: ours against what, unit), `async def measure()` that returns
figures by name ("ours", "limit", "ratio", "target" and whatever else is worth printing), and AT_MOST = True where
less is better. A limit of 0 means that there is none but the target.
"""
