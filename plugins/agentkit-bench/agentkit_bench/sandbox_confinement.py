"""What a process can take away from itself before it runs foreign code (Linux, no privileges).

A fresh interpreter runs this file beside ``sandbox_child.py``; it imports nothing of ours. Three
mechanisms of the kernel are asked for, each on its own, since not every system has them:

* capabilities are dropped, so that code started by root may do no more than its files' owner;
* Landlock (Linux 5.13): no file is written, made, renamed or removed, but those in one folder;
* a seccomp filter: no sockets, no further processes or programs, no signals to other processes,
  no way out of the process group, no change of limits or of the owner, mode or times of files.

Reading files is not taken away: the interpreter needs its library.
"""

from __future__ import annotations

import errno
import os
import platform
import struct
from collections.abc import Iterator

_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000  # SECCOMP_RET_ERRNO, the error number in the low bits
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32_BIT = 0x40000000
_CLONE_THREAD = 0x00010000

# name: number on x86_64, number on aarch64 (None where there is no such call)
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "setsid": (112, 157),
    "setpgid": (109, 154),
    "unshare": (272, 97),
    "setns": (308, 268),
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "setrlimit": (160, 164),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "utimensat": (280, 88),
    "futimesat": (261, None),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
}
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_KILL = (62, 129)
_TGKILL = (234, 131)
_PRLIMIT = (302, 261)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_CHANGE_FOLDER = 0b1_1111_1111_0000  # remove and make entries of every kind


def confine(folder: str | None) -> list[str]:
    """Take away what can be taken away, for good, from this process and all that it starts.

    Args:
        folder: Where files may be written; None for nowhere.

    Returns:
        What the kernel granted, of ``capabilities``, ``files`` and ``processes and network``.
    """
    if platform.system() != "Linux":
        return []
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, without which the rest is refused
    granted = []
    if _drop_capabilities(libc):
        granted.append("capabilities")
    if _restrict_files(libc, folder):
        granted.append("files")
    if _filter_calls(libc):
        granted.append("processes and network")
    return granted


def _drop_capabilities(libc: object) -> bool:
    import ctypes

    number = {"x86_64": 126, "aarch64": 91}.get(platform.machine())  # capset
    if number is None:
        return False
    header = struct.pack("=Ii", 0x20080522, 0)
    none = struct.pack("=6I", 0, 0, 0, 0, 0, 0)
    return _syscall(libc, number, ctypes.c_char_p(header), ctypes.c_char_p(none)) == 0


def _restrict_files(libc: object, folder: str | None) -> bool:
    import ctypes

    version = _syscall(libc, 444, None, 0, 1)  # landlock_create_ruleset: which version?
    if version < 1:
        return False
    changes = _WRITE_FILE | _CHANGE_FOLDER
    changes |= (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    ruleset = _syscall(libc, 444, ctypes.c_char_p(struct.pack("=Q", changes)), 8, 0)
    if ruleset < 0:
        return False
    _permit(libc, ruleset, os.devnull, changes & (_WRITE_FILE | _TRUNCATE))
    if folder is not None:
        _permit(libc, ruleset, folder, changes)
    done = _syscall(libc, 446, ruleset, 0) == 0  # landlock_restrict_self
    os.close(ruleset)
    return done


def _permit(libc: object, ruleset: int, path: str, access: int) -> None:
    import ctypes

    at = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rule = struct.pack("=Qi", access, at)
    _syscall(libc, 445, ruleset, 1, ctypes.c_char_p(rule), 0)  # landlock_add_rule
    os.close(at)


def _filter_calls(libc: object) -> bool:
    import ctypes

    if platform.machine() not in _ARCHITECTURES or struct.calcsize("P") != 8:
        return False
    steps = b"".join(struct.pack("=HBBI", *step) for step in filter_steps(platform.machine()))
    code = ctypes.create_string_buffer(steps, len(steps))
    program = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(steps) // 8, ctypes.addressof(code)), 16
    )
    number = {"x86_64": 317, "aarch64": 277}[platform.machine()]  # seccomp
    return _syscall(libc, number, 1, 0, program) == 0  # SECCOMP_SET_MODE_FILTER


def filter_steps(machine: str) -> Iterator[tuple[int, int, int, int]]:
    """The filter as steps of the kernel's packet filter: code, jump if true, if false, operand."""
    column, architecture = _ARCHITECTURES[machine]
    refused = (_RETURN, 0, 0, _REFUSE | errno.EPERM)
    allowed = (_RETURN, 0, 0, _ALLOW)
    yield (_LOAD, 0, 0, _ARCHITECTURE)
    yield (_EQUAL, 1, 0, architecture)
    yield refused
    yield (_LOAD, 0, 0, _NUMBER)
    yield (_AT_LEAST, 0, 1, _X32_BIT)
    yield refused
    for numbers in _REFUSED.values():
        number = numbers[column]
        if number is not None:
            yield (_EQUAL, 0, 1, number)
            yield refused
    yield (_EQUAL, 0, 1, _CLONE3[column])  # not there: the C library then takes clone
    yield (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)
    yield (_EQUAL, 0, 4, _CLONE[column])  # threads, but no processes
    yield (_LOAD, 0, 0, _ARGUMENTS)
    yield (_ANY_BIT, 1, 0, _CLONE_THREAD)
    yield refused
    yield allowed
    for numbers in (_KILL, _TGKILL):  # signals to itself alone
        yield (_EQUAL, 0, 4, numbers[column])
        yield (_LOAD, 0, 0, _ARGUMENTS)
        yield (_EQUAL, 1, 0, os.getpid())
        yield refused
        yield allowed
    yield (_EQUAL, 0, 6, _PRLIMIT[column])  # limits are read, and not set
    yield (_LOAD, 0, 0, _ARGUMENTS + 2 * 8)
    yield (_EQUAL, 0, 2, 0)
    yield (_LOAD, 0, 0, _ARGUMENTS + 2 * 8 + 4)
    yield (_EQUAL, 1, 0, 0)
    yield refused
    yield allowed
    yield allowed


def _syscall(libc: object, number: int, *arguments: object) -> int:
    import ctypes

    words = [
        ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments
    ]
    result: int = libc.syscall(ctypes.c_long(number), *words)  # type: ignore[attr-defined]  # a C library has no types
    return result
