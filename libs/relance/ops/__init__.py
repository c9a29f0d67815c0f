"""What operators run: replay, verify, export, audit."""
