"""Becomes another program that dies with its parent, as the user it is told to be. Run by path; standard library only.

    python -I -S launch.py --parent PID --signal N [--as METHOD:UID:GID] PROGRAM ARGUMENTS…

It is a program of its own, not a function between fork and exec: the room has threads of gRPC, and those make
code in a forked child unsafe. Execing keeps the process id, so the parent sees only the program.

Methods of being somebody else, for a PostgreSQL that refuses to run as root:

- `plain`  setgroups, setgid, setuid.
- `reach`  the same, keeping the one capability to read and search past permissions, so that programs and data below
           a private folder of root stay reachable without changing that folder.
- `inside` a user namespace in which this user has the given id; outside nothing changes.
"""

from __future__ import annotations

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1
PR_SET_SECUREBITS = 28
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
SECBIT_NO_SETUID_FIXUP = 1 << 2
CAP_DAC_OVERRIDE = 1
CAP_DAC_READ_SEARCH = 2
CLONE_NEWUSER = 0x10000000
CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _prctl(option: int, *arguments: int) -> None:
    padded = [ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:4]]
    _check(_libc.prctl(option, *padded), f"prctl {option}")


def _set_capabilities(mask: int) -> None:
    """Permitted, effective and inheritable sets become exactly `mask` (capabilities below 32)."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)
    _check(_libc.capset(header, data), "capset")


def _permitted() -> int:
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()
    _check(_libc.capget(header, data), "capget")
    return int(data[1])


def become(method: str, uid: int, gid: int) -> None:
    """Change this process's user. Raises OSError where the system forbids it."""
    if method == "inside":
        outside_uid, outside_gid = os.geteuid(), os.getegid()
        _check(_libc.unshare(CLONE_NEWUSER), "unshare")
        for name, line in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {outside_uid} 1"),
            ("gid_map", f"{gid} {outside_gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(line)
        return
    os.setgroups([])
    os.setgid(gid)
    if method == "plain":
        os.setuid(uid)
        return
    # Containers often grant the stronger of the two capabilities only.
    permitted = _permitted()
    kept = CAP_DAC_READ_SEARCH if permitted & 1 << CAP_DAC_READ_SEARCH else CAP_DAC_OVERRIDE
    # Without this bit access(2), with which PostgreSQL looks for its own programs, ignores capabilities.
    _prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP)
    os.setuid(uid)
    _set_capabilities(1 << kept)
    _prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept)


def main(arguments: list[str]) -> None:
    """Parse, change user, tie the process to its parent, exec. Exit code 126: the system forbids it."""
    parent = death_signal = 0
    while arguments and arguments[0].startswith("--"):
        option, value, *arguments = arguments
        if option == "--parent":
            parent = int(value)
        elif option == "--signal":
            death_signal = int(value)
        elif option == "--as":
            method, uid, gid = value.split(":")
            try:
                become(method, int(uid), int(gid))
            except OSError as error:
                sys.stderr.write(f"cannot run as user {uid} ({method}): {error}\n")
                sys.exit(126)
    if parent:
        # Last: changing the user clears it.
        _prctl(PR_SET_PDEATHSIG, death_signal)
        if os.getppid() != parent:
            sys.exit(125)
    os.execv(arguments[0], arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
