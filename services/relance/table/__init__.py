"""The table service: runs tables, one actor each, on the event log."""
