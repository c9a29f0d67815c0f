"""The wallet service: a double-entry ledger that only grows, and who may move money in it."""
