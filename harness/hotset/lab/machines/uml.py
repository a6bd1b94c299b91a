"""User-Mode Linux: a real kernel with dm-cache, bcache and iSCSI, as an ordinary process.

Debian packages the kernel (``user-mode-linux``); it runs the lab's image at this computer's CPU
speed and is up in a second or two. It has one CPU, and a system call or a switch between its
processes costs tens of microseconds; it cannot trace itself (no ftrace).

Everything is in namespaces of its own, so nothing of it is seen on this computer and two of them
do not meet; an ordinary user makes them inside a user namespace. The guest's network card is a tap
device, whose other end is the lab's address for iSCSI; where ``/dev/net/tun`` is not this user's to
open, it is a packet socket on one end of a veth pair (``transport=raw`` of Documentation/virt/uml/
user_mode_linux_howto_v2.rst). The guest's memory is a tmpfs of its own: the size of ``/dev/shm``
does not matter.
"""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from hotset.block import flashdev
from hotset.core.clock import boot_id, wait_for_word
from hotset.core.machines.base import CommandError, PrerequisiteMissingError
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.core.paths import cache_dir, write_whole
from hotset.core.units import Bytes

from .. import image as images
from ..image import Image
from .guest import PORTS, Disk, Files, Guest, wait_until_ready
from .uml_package import Kernel, ensure, find_fetched

__all__ = ["Kernel", "UmlSpec", "boot", "ensure", "find_fetched", "lacking", "open_network"]

PROCESS = "User-Mode Linux"
"""Its name in the journal."""

HOST_ADDRESS, GUEST_ADDRESS, _BITS = "10.77.0.1", "10.77.0.2", 30
_MEMORY = "memory"
"""The folder that the guest's memory is mounted on, in a namespace of the guest's own."""

_CARD = "vec0"
_MTU = 9000
_MAC = "02:68:6f:74:00:02"
"""The same after a power cut, or its neighbours would look for the old card."""
_SILENCE_MAX_S = 60.0
_START_LIMIT_S = 10.0
_PROBE_LIMIT_S = 15.0
_PROBE_MEMORY = Bytes(64 * 1024**2)
_ROOM = Bytes(64 * 1024**2)
"""Memory of a guest beside its own: its page tables and its processes on this computer."""

# Holds the network's namespace for as long as the lab is up. $1: the lab's network card, $2: its
# address, $3: MTU.
_TAP = """
set -e
ip tuntap add "$1" mode tap
ip address add "$2" dev "$1"
ip link set "$1" mtu "$3" up
echo hotset-network
exec sleep infinity
"""
# $4: the pair's other end, that the guest listens on. A packet socket has room for some 200 KB,
# where a tap device queues a thousand packets: what is on its way is kept below that, or a burst is
# lost and sent again (cwnd lock: snd_cwnd_clamp of net/ipv4/tcp_metrics.c; in segments).
_VETH = """
set -e
ip link add "$1" type veth peer name "$4"
ip address add "$2" dev "$1"
ip link set "$1" mtu "$3" up
ip link set "$4" mtu "$3" up
ip route change "${2%.*}.0/30" dev "$1" src "${2%/*}" cwnd lock 10
echo hotset-network
exec sleep infinity
"""
_NETWORK_READY = "hotset-network"
_TUN = "/dev/net/tun"
_OUTER, _INNER = "lab0", "lab1"
# $1: the C library that the kernel was linked for, $2: the guest's memory in MiB, $3: a folder for
# it; then the kernel's argv. Its memory is a file that it maps executable, on a tmpfs that goes
# away with it. The library's bind mount comes last: no other program of this computer runs after
# it.
_KERNEL = """
set -e
mount -t tmpfs -o "size=$(($2 + 16))M" tmpfs "$3"
export TMPDIR=$3
library=$1
shift 3
mount --bind "$library" /lib64
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class UmlSpec:
    """A guest to boot."""

    memory: Bytes
    disks: tuple[Disk, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """The namespaces of a lab's network.

    ``enter``: argv prefix that runs a program in there. ``ports``: the guest's port → the loopback
    port of this computer that leads there.
    """

    enter: tuple[str, ...]
    ports: dict[int, int]


class Uml(Guest):
    """A running User-Mode Linux."""

    def __init__(
        self, image: Image, files: Files, ports: dict[int, int], start: Callable[[], int]
    ) -> None:
        """:param start: boots it; returns the process that it is."""
        self._boot = start
        super().__init__(image, files, "uml", ports, start())

    def power_on(self) -> None:
        """Boot again after a power cut; its disks are as the cut left them.

        :raises MachineGoneError: it did not come up; its last words are named.
        """
        pid = self._boot()
        self.reconnect()
        self._begin(pid)


def open_network(local: Local, folder: Path, cleanup: Cleanup) -> Network:
    """The lab's network: its namespaces, its veth pair, and the way in for SSH and SQL.

    :raises PrerequisiteMissingError: this computer refuses namespaces or veth; its words are named.
    """
    into = _hold_namespaces(local, folder / "network.log", cleanup)
    return Network(into, _relay(local, folder, into, cleanup))


def _hold_namespaces(local: Local, log: Path, cleanup: Cleanup) -> tuple[str, ...]:
    holder = local.spawn(network_argv(), log)
    cleanup.process("network of the lab", holder.pid, at_once=True)
    _require_word(holder, log, _NETWORK_READY)
    return enter(holder.pid)


def network_argv() -> list[str]:
    """The process that holds the lab's network."""
    address = f"{HOST_ADDRESS}/{_BITS}"
    script = _TAP if _has_tap() else _VETH
    words = ("bash", "-c", script, "hotset-network", _OUTER, address, str(_MTU), _INNER)
    return [*_unshare(), *words]


def _has_tap() -> bool:
    return os.access(_TUN, os.R_OK | os.W_OK)


def _card() -> str:
    """The guest's network card, as its kernel takes it."""
    end = f"transport=tap,ifname={_OUTER}" if _has_tap() else f"transport=raw,ifname={_INNER}"
    return f"{_CARD}:{end},mtu={_MTU},depth=64,gro=1,mac={_MAC}"


def enter(holder: int | str) -> tuple[str, ...]:
    """The argv prefix that runs a program in the lab's network."""
    # Its owner is root in the user namespace already; to change groups is denied there
    # (user_namespaces(7), /proc/PID/setgroups).
    user = ("--user", "--preserve-credentials") if os.geteuid() else ()
    return ("nsenter", f"--target={holder}", *user, "--net")


def _unshare() -> tuple[str, ...]:
    user = ("--user", "--map-root-user") if os.geteuid() else ()
    return ("unshare", *user, "--net")


def _require_word(process: subprocess.Popen[bytes], log: Path, word: str) -> None:
    if not wait_for_word(process, log, word, _START_LIMIT_S, 0.01):
        words = log.read_text(errors="replace").strip()[-600:]
        raise PrerequisiteMissingError(f"the lab's network could not be made: {words}")


def _relay(local: Local, folder: Path, into: tuple[str, ...], cleanup: Cleanup) -> dict[int, int]:
    """Loopback ports of this computer that lead to the guest's."""
    with ExitStack() as stack:
        listeners = {port: stack.enter_context(_listener()) for port in PORTS}
        routes = [
            f"{listener.fileno()}={GUEST_ADDRESS}:{port}" for port, listener in listeners.items()
        ]
        argv = [*into, str(flashdev.program(local)), "relay", *routes]
        handed_down = tuple(listener.fileno() for listener in listeners.values())
        process = local.spawn(argv, folder / "relay.log", pass_fds=handed_down)
        cleanup.process("relay to the guest", process.pid, at_once=True)
        return {port: listener.getsockname()[1] for port, listener in listeners.items()}


def _listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0), backlog=128)


def boot(
    local: Local,
    image: Image,
    kernel: Kernel,
    spec: UmlSpec,
    network: Network,
    folder: Path,
    cleanup: Cleanup,
) -> Uml:
    """Start the kernel and wait until the guest answers.

    :param folder: the lab's; console, disks of the guest's own and known_hosts lie there.
    :raises PrerequisiteMissingError: this computer has not the memory.
    :raises MachineGoneError: it ended or did not come up; its last words are named.
    """
    _require_memory(spec.memory)
    files = Files(folder)
    root = folder / "root.cow"
    cleanup.command(f"remove {root.name}", ["rm", "-f", str(root)])
    local.run(["rm", "-f", str(root)])
    argv = kernel_argv(image, kernel, spec, network.enter, root)
    (folder / _MEMORY).mkdir(exist_ok=True)

    def start() -> int:
        process = local.spawn(argv, files.console)
        note(PROCESS, process.pid, at_once=True)
        try:
            wait_until_ready(files, files.console, process.poll, _SILENCE_MAX_S)
        except BaseException:
            # Nobody else knows of it by then: a second one would have the same disks.
            process.kill()
            process.wait()
            raise
        return process.pid

    note: Callable[..., object] = cleanup.process
    guest = Uml(image, files, network.ports, start)
    # A later start may be within a part of the work that ends before the machine does.
    note = cleanup.leftover_process
    cleanup.call("switch the machine off", guest.power_cut)
    cleanup.call("close the connection to the machine", guest.close)
    return guest


def kernel_argv(
    image: Image, kernel: Kernel, spec: UmlSpec, into: tuple[str, ...], root: Path
) -> list[str]:
    """The call that becomes the guest.

    :param into: the argv prefix into the lab's network.
    :param root: takes what is written to the root disk (copy on write), so the image stays frozen.
    """
    mib = spec.memory // 1024**2
    memory = root.with_name(_MEMORY)
    disks = [f"ubd0={root},{image.root_disk}"]
    names = []
    for number, disk in enumerate(spec.disks, 1):
        disks.append(f"ubd{number}{'r' if disk.readonly else ''}={disk.path}")
        names.append(f"hotset.disk=ubd{chr(ord('a') + number)}:{disk.serial}")
    return [
        *into,
        *("unshare", "--mount", "bash", "-c", _KERNEL, "hotset-uml"),
        *(str(image.library), str(mib), str(memory)),
        str(kernel.program),
        # A filter of system calls instead of ptrace: the guest's processes switch 3 times faster.
        "seccomp=auto",
        f"mem={mib}M",
        *disks,
        "root=/dev/ubda",
        "rw",
        "init=/usr/sbin/hotset-init",
        # The guest may mount this folder of the computer's, and no other.
        f"hostfs={kernel.modules}",
        "hotset.modules=hostfs",
        _card(),
        f"hotset.{_CARD}={GUEST_ADDRESS}/{_BITS}",
        *names,
        *("con=null", "con0=null,fd:1", "ssl=null", "quiet", "panic=-1"),
    ]


def _require_memory(memory: Bytes) -> None:
    """:raises PrerequisiteMissingError: less is free than the guest may take."""
    text = Path("/proc/meminfo").read_text()
    free = Bytes(int(text.split("MemAvailable:")[1].split()[0]) * 1024)
    if free < memory + _ROOM:
        raise PrerequisiteMissingError(
            f"machine.memory = {memory}, but {free} of this computer's memory are free: end other"
            " programs, or lower machine.memory"
        )


def lacking() -> str | None:
    """Explain why this computer cannot run it; None if no reason is known.

    Whether the kernel boots here is known once image and package are there to try it with.
    """
    if platform.machine() != "x86_64":
        return f"Debian has its package for x86-64 alone, this is {platform.machine()}"
    refused = _namespace_refusal()
    if refused:
        return refused
    built, kernel = images.find_built(), find_fetched()
    if built is None or kernel is None:
        return None
    return probe(Local(), built, kernel)


def _namespace_refusal() -> str | None:
    try:
        Local().run([*_unshare(), "--mount", "true"], timeout_s=20)
    except (CommandError, PrerequisiteMissingError) as error:
        if os.geteuid() == 0:
            return f"it needs network and mount namespaces: {error}"
        return (
            f"an ordinary user needs user namespaces for it, which this computer refuses: {error};"
            " run hotset as root, or allow them: sysctl -w"
            " kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), sysctl -w"
            " user.max_user_namespaces=10000"
        )
    return None


def probe(local: Local, image: Image, kernel: Kernel) -> str | None:
    """Describe a failed boot; None when the kernel boots here.

    Tried once per boot of this computer, package, image and kind of user: on some computers a
    package's kernel panics at its first process (seen with 6.1 and 6.12 on CPUs with AMX).
    """
    who = "user" if os.geteuid() else "root"
    memory = cache_dir() / f"uml-{kernel.version}-{image.key}-{who}-{boot_id()}"
    if not memory.exists():
        for old in cache_dir().glob(f"uml-*-{who}-*"):
            old.unlink(missing_ok=True)
        write_whole(memory, _failure(local, image, kernel) or "")
    return memory.read_text() or None


def _failure(local: Local, image: Image, kernel: Kernel) -> str | None:
    """Boot as far as the first process, with a network, and end it again."""
    with tempfile.TemporaryDirectory(prefix="uml-probe-", dir=cache_dir()) as name:
        folder = Path(name)
        cleanup = Cleanup(folder, local)
        log = folder / "console.log"
        with cleanup.part():
            try:
                into = _hold_namespaces(local, folder / "network.log", cleanup)
            except PrerequisiteMissingError as error:
                return str(error)
            (folder / _MEMORY).mkdir()
            argv = kernel_argv(image, kernel, UmlSpec(_PROBE_MEMORY, ()), into, folder / "root")
            argv = ["init=/bin/true" if word.startswith("init=") else word for word in argv]
            process = local.spawn(argv, log)
            cleanup.process(PROCESS, process.pid, at_once=True)
            # `true` ran and ended well, which the kernel does not take from its first process.
            if wait_for_word(
                process, log, "Attempted to kill init! exitcode=0x00000000", _PROBE_LIMIT_S
            ):
                return None
            words = log.read_text(errors="replace").strip()
    return f"user-mode-linux {kernel.version} does not boot here: {_telling(words)}"


def _telling(words: str) -> str:
    """The line of a console that says what went wrong, or its last ones."""
    for line in words.splitlines():
        if "Kernel panic" in line or "errno" in line:
            return line.strip()
    return words[-400:] or "it said nothing"
