"""A seccomp filter, assembled as classic BPF: system calls that no command of an agent has a use for.

The same bytes go to `prctl` and to `bwrap --seccomp FD`. Refusals are EPERM, or ENOSYS where programs fall back
to something harmless on their own. A foreign architecture kills: its calls have other numbers.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Mapping
from functools import cache

from toolcrib.dataclass import dataclass

LOAD, EQUAL, ANY_BIT, AT_LEAST, AND, RETURN = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCH = 0, 4
X32 = 0x40000000
NEW_NAMESPACES = 0x7E020000 | 0x80  # mount, cgroup, uts, ipc, user, pid, net; time
SET_ID = 0o6000
AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SOCK_TYPE, SOCK_STREAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_PACKET = 0xF, 1, 3, 5, 10
FORBIDDEN_CONTROLS = (
    0x5412, 0x541C,  # typing into a terminal: TIOCSTI, TIOCLINUX
    # What changes files and folders that one may only read. Flags: SETFLAGS, FSSETXATTR, VERITY, FAT's attributes;
    0x40086602, 0x40046602, 0x401C5820, 0x40806685, 0x40047211,
    # generations: SETVERSION, also ext4's older one; encryption: SET_ENCRYPTION_POLICY, ADD_ and REMOVE_ENCRYPTION_KEY;
    0x40087602, 0x40047602, 0x40086604, 0x40046604, 0x800C6613, 0xC0506617, 0xC0406618,
    # subvolumes of btrfs: SNAP_CREATE, SUBVOL_CREATE, SNAP_DESTROY, the second version of each, SUBVOL_SETFLAGS,
    # SET_RECEIVED_SUBVOL.
    0x50009401, 0x5000940E, 0x5000940F, 0x50009417, 0x50009418, 0x5000943F, 0x4008941A, 0xC0C89425,
)  # fmt: skip
EVERYBODY, ITSELF = 0xFFFFFFFF, 0  # kill(-1), prlimit(0)

# System calls that act on other processes, on the kernel, or on what the sandbox is built of: x86-64, aarch64.
FORBIDDEN = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142),
    "sethostname": (170, 161), "setdomainname": (171, 162), "init_module": (175, 105), "delete_module": (176, 106),
    "finit_module": (313, 273), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "acct": (163, 89), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266), "vhangup": (153, 58),
    "syslog": (103, 116), "lookup_dcookie": (212, 18), "fanotify_init": (300, 262), "memfd_secret": (447, 447),
    "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None), "uselib": (134, None),
    "_sysctl": (156, None),
    "file_setattr": (469, 469), "nfsservctl": (180, 42), "move_pages": (279, 239), "migrate_pages": (256, 238),
}  # fmt: skip
# Their arguments lie behind a pointer, which a filter cannot follow; programs have a way without them.
MISSING = {"clone3": (435, 435), "openat2": (437, 437)}
# Memory, queues and semaphores by a number or a name, which other processes in the same namespaces share.
SHARED = {
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
}  # fmt: skip
# What no rule on paths restricts on files that may only be read: watching them (programs fall back to polling), and
# attributes (refused as by file systems that have none).
WATCHING = {"inotify_init": (253, None), "inotify_init1": (294, 26)}
ATTRIBUTES = {
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "setxattrat": (463, 463), "removexattrat": (466, 466),
}  # fmt: skip
# The argument that names a process; only 0, the caller itself, is allowed.
ONLY_ITSELF = {
    "prlimit64": ((302, 261), 0), "setpriority": ((141, 140), 1), "ioprio_set": ((251, 30), 1),
    "sched_setaffinity": ((203, 122), 0), "sched_setscheduler": ((144, 119), 0), "sched_setparam": ((142, 118), 0),
    "sched_setattr": ((314, 274), 0),
}  # fmt: skip
# The argument that holds the mode: no program may be created that lends our rights to other users.
MODES = {
    "open": ((2, None), 2), "creat": ((85, None), 1), "openat": ((257, 56), 3), "chmod": ((90, None), 1),
    "fchmod": ((91, 52), 1), "fchmodat": ((268, 53), 2), "fchmodat2": ((452, 452), 2), "mknod": ((133, None), 1),
    "mknodat": ((259, 33), 2), "mkdir": ((83, None), 1), "mkdirat": ((258, 34), 2),
}  # fmt: skip
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7), "arm64": (1, 0xC00000B7)}
SPECIAL = {
    "clone": (56, 220), "ioctl": (16, 29), "socket": (41, 198), "socketpair": (53, 199), "kill": (62, 129),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SyscallFilter:
    """What a filter allows: `internet` sockets (TCP, UDP), `unix` sockets.

    `alone` says that the command has namespaces of its own, so that all processes and names it can reach are its own:
    it may signal and limit processes, share memory by name, watch files and set attributes.
    """

    internet: bool = False
    unix: bool = False
    alone: bool = False


def supported(machine: str = "") -> bool:
    return (machine or platform.machine()) in ARCHITECTURES


@cache
def program(allowed: SyscallFilter, machine: str = "") -> bytes:
    """The filter as an array of `struct sock_filter`. Raises KeyError for an architecture without numbers."""
    column, audit = ARCHITECTURES[machine or platform.machine()]
    made = [
        *((LOAD, 0, 0, ARCH), (EQUAL, 1, 0, audit), (RETURN, 0, 0, KILL)),
        (LOAD, 0, 0, NUMBER),
    ]
    if column == 0:
        made += [(AT_LEAST, 0, 1, X32), (RETURN, 0, 0, _refuse(errno.ENOSYS))]
    refused: list[tuple[Mapping[str, tuple[int | None, int | None]], int]] = [
        (FORBIDDEN, errno.EPERM),
        (MISSING, errno.ENOSYS),
    ]
    if not allowed.alone:
        refused += [(SHARED, errno.EPERM), (WATCHING, errno.ENOSYS), (ATTRIBUTES, errno.EOPNOTSUPP)]
    for table, code in refused:
        for numbers in table.values():
            made += _block(numbers[column], [(RETURN, 0, 0, _refuse(code))])
    for numbers, argument in MODES.values():
        made += _block(numbers[column], _refuse_bits(argument, SET_ID))
    made += _block(SPECIAL["clone"][column], _refuse_bits(0, NEW_NAMESPACES))
    made += _block(SPECIAL["ioctl"][column], _refuse_values(1, FORBIDDEN_CONTROLS))
    if not allowed.alone:
        made += _block(SPECIAL["kill"][column], _refuse_values(0, (EVERYBODY,)))
        for numbers, argument in ONLY_ITSELF.values():
            made += _block(numbers[column], _only_values(argument, [ITSELF]))
    families = [AF_UNIX] * allowed.unix + [AF_INET, AF_INET6] * allowed.internet
    made += _block(SPECIAL["socket"][column], _sockets(families))
    made += _block(SPECIAL["socketpair"][column], _pairs(any_kind=allowed.unix))
    made.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in made)


Step = tuple[int, int, int, int]


def _refuse(code: int) -> int:
    return ERRNO | code


def _block(number: int | None, body: list[Step]) -> list[Step]:
    """A body for one system call, which ends in RETURN; every other system call jumps over it."""
    return [] if number is None else [(EQUAL, 0, len(body), number), *body]


def _argument(index: int) -> Step:
    return (LOAD, 0, 0, 16 + 8 * index)  # the low word, on a little-endian machine


def _refuse_bits(argument: int, bits: int) -> list[Step]:
    refuse, allow = (RETURN, 0, 0, _refuse(errno.EPERM)), (RETURN, 0, 0, ALLOW)
    return [_argument(argument), (ANY_BIT, 0, 1, bits), refuse, allow]


def _refuse_values(argument: int, values: tuple[int, ...]) -> list[Step]:
    refuse, allow = (RETURN, 0, 0, _refuse(errno.EPERM)), (RETURN, 0, 0, ALLOW)
    tests = [(EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return [_argument(argument), *tests, allow, refuse]


def _only_values(argument: int, values: list[int]) -> list[Step]:
    refuse, allow = (RETURN, 0, 0, _refuse(errno.EPERM)), (RETURN, 0, 0, ALLOW)
    tests = [(EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return [_argument(argument), *tests, refuse, allow]


def _pairs(*, any_kind: bool) -> list[Step]:
    """Allows pairs of unix sockets, and without `any_kind` only those that stay connected to each other.

    A datagram socket of a pair may be turned to any address, and so speaks to each daemon whose socket can be seen. A
    filter cannot read the addresses. The kernel makes a raw unix socket a datagram socket.
    """
    refuse, allow = (RETURN, 0, 0, _refuse(errno.EPERM)), (RETURN, 0, 0, ALLOW)
    if any_kind:
        return _only_values(0, [AF_UNIX])
    return [
        *(_argument(0), (EQUAL, 0, 4, AF_UNIX), _argument(1), (AND, 0, 0, SOCK_TYPE)),
        *((EQUAL, 2, 0, SOCK_STREAM), (EQUAL, 1, 0, SOCK_SEQPACKET), refuse, allow),
    ]


def _sockets(families: list[int]) -> list[Step]:
    """Allows sockets of these families, and no socket that sees raw packets."""
    refuse, allow = (RETURN, 0, 0, _refuse(errno.EPERM)), (RETURN, 0, 0, ALLOW)
    kinds: list[Step] = [
        *(_argument(1), (AND, 0, 0, SOCK_TYPE)),
        *((EQUAL, 2, 0, SOCK_RAW), (EQUAL, 1, 0, SOCK_PACKET), allow, refuse),
    ]
    tests = [(EQUAL, len(families) - at, 0, family) for at, family in enumerate(families)]
    return [_argument(0), *tests, refuse, *kinds]
