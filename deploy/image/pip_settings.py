"""This machine's pip configuration as a file for a build: `pip_settings.py AUTHORITY_INSIDE` prints it.

What names files of this machine stays out. The authority of the index is a file of the build's own.
"""

from __future__ import annotations

import ast
import subprocess
import sys

KEPT = {"index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout", "retries"}


def main() -> None:
    """Print it."""
    run = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    lines = ["[global]"]
    for line in run.stdout.splitlines():
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        words = [word for word in str(ast.literal_eval(value)).split() if not word.startswith(("file:", "/"))]
        if key in KEPT and words:
            lines.append(f"{key} = {' '.join(words)}")
    sys.stdout.write("\n".join([*lines, f"cert = {sys.argv[1]}", ""]))


if __name__ == "__main__":
    main()
