"""The rake service: schedules, the recomputation of every hand's rake, and its collection."""
