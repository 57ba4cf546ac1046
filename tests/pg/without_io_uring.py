"""Runs a command in which the kernel refuses io_uring, as container runtimes do: a seccomp filter.

    python without_io_uring.py COMMAND WORD…

The filter (classic BPF over `struct seccomp_data`, seccomp(2)) answers io_uring_setup with EPERM.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
# The number is the same on x86-64 and arm64: system calls since 2018 share one table.
IO_URING_SETUP = 425
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


def instruction(code: int, jump_true: int, jump_false: int, value: int) -> bytes:
    """One instruction of classic BPF."""
    return struct.pack("HBBI", code, jump_true, jump_false, value)


def main() -> None:
    """Install the filter in this process and become the command."""
    program = b"".join(
        (
            instruction(0x20, 0, 0, 0),  # load the system call's number
            instruction(0x15, 0, 1, IO_URING_SETUP),  # is it this one?
            instruction(0x06, 0, 0, REFUSE),
            instruction(0x06, 0, 0, ALLOW),
        )
    )
    instructions = ctypes.create_string_buffer(program)
    filter_program = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_program, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
