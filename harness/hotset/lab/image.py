"""The lab's frozen image: a Debian userland and kernel, built once, cached by its recipe.

A frozen ext4 image is sturdier than sharing the host's root: programs in the guest do not change
under it when the host is upgraded. It is built with mmdebstrap, without root where user
namespaces allow it, and its key pair is made with it, so that host keys can be checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.machines.local import Local
from hotset.core.paths import cache_dir
from hotset.core.units import Bytes

SUITE = "trixie"
_RECIPE = Path(__file__).parent / "image_recipe"
_ROOT_SIZE = Bytes(2 * 1024**3)
_BUILD_TIMEOUT_S = 1200.0
_BUILDING = "hotset-image-"
_HOST_KEYS = ("/etc/apt/trusted.gpg.d", "/usr/share/keyrings/debian-archive-keyring.gpg")
_SLIM = ("doc", "man", "locale", "info", "lintian")
_INITRAMFS = "MODULES=list\nCOMPRESS=zstd\nFSTYPE=ext4\n"
_INITRAMFS_MODULES = "virtio_pci\nvirtio_blk\next4\n"
_UPDATE_INITRAMFS = "update_initramfs=no\nbackup_initramfs=no\n"
_CREATE_CLUSTER = "create_main_cluster = false\n"
_LIBRARY = ("ld-linux-x86-64.so.2", "libc.so.6")
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.pgp"
_SSHD = "PermitRootLogin prohibit-password\nPasswordAuthentication no\nUseDNS no\nUsePAM no\n"


@dataclass(frozen=True, slots=True)
class Image:
    """A built image's files."""

    folder: Path

    @property
    def root_disk(self) -> Path:
        return self.folder / "root.ext4"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd.img"

    @property
    def library(self) -> Path:
        """The image's C library, for programs of its Debian that run on this computer."""
        return self.folder / "library"

    @property
    def keyring(self) -> Path:
        """The keys that Debian signs its archive with, as the image's own apt has them."""
        return self.folder / "debian-archive-keyring.gpg"

    @property
    def client_key(self) -> Path:
        return self.folder / "client_key"

    @property
    def host_key(self) -> str:
        """The guest's public host key, as a known_hosts line has it."""
        return (self.folder / "host_key.pub").read_text().strip()

    @property
    def key(self) -> str:
        return self.folder.name


def packages() -> list[str]:
    """The packages of the recipe, comments left out."""
    lines = (_RECIPE / "packages.txt").read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def recipe_key() -> str:
    """Hash over everything that makes the image what it is."""
    recipe = (_RECIPE / "hotset-init").read_text()
    settings = [_INITRAMFS, _INITRAMFS_MODULES, _UPDATE_INITRAMFS, _CREATE_CLUSTER, _SSHD]
    parts = [*settings, str(_ROOT_SIZE), recipe]
    parts += _recipe_argv(Path("work"), Path("root"), "root")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def find_built() -> Image | None:
    """The image of today's recipe, if it has been built."""
    image = Image(cache_dir() / "image" / recipe_key())
    return image if image.root_disk.exists() else None


def ensure(local: Local, say: Callable[[str], None]) -> Image:
    """The image of today's recipe, built (1-2 minutes) if it is not cached.

    :raises PrerequisiteMissingError: mmdebstrap is missing or may not make user namespaces.
    :raises CommandError: the build failed; nothing half-made stays.
    """
    built = find_built()
    if built is not None:
        return built
    say("building the lab's Debian image (once, 1-2 minutes)")
    shelf = cache_dir() / "image"
    shelf.mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=_BUILDING, dir=_workshop(shelf)))
    try:
        work.chmod(0o755)
        _write_inputs(work)
        _bootstrap(local, work)
        _publish(local, work, shelf / recipe_key())
    except BaseException:
        _remove_tree(local, work)
        raise
    return Image(shelf / recipe_key())


def _workshop(shelf: Path) -> Path:
    """Where to build: beside the images if everybody may enter there, else in /var/tmp.

    Without root the build runs in a user namespace, whose users may not enter a home folder that
    is closed to others, as Debian 13 and Ubuntu make them.
    """
    folders = (shelf, *shelf.parents)
    if os.geteuid() == 0 or all(folder.stat().st_mode & stat.S_IXOTH for folder in folders):
        return shelf
    return Path("/var/tmp")  # noqa: S108


def _publish(local: Local, work: Path, target: Path) -> None:
    """One rename makes it visible: an interrupted build leaves no image."""
    if work.parent == target.parent:
        work.rename(target)
        return
    beside = Path(tempfile.mkdtemp(prefix=_BUILDING, dir=target.parent))
    try:
        local.run(["cp", "--archive", "--sparse=always", f"{work}/.", str(beside)], timeout_s=300)
        beside.rename(target)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    shutil.rmtree(work)


def _write_inputs(work: Path) -> None:
    """Everything that is not a package: key pairs, sshd and initramfs settings, PID 1."""
    import asyncssh

    host = asyncssh.generate_private_key("ssh-ed25519", comment="hotset lab")
    client = asyncssh.generate_private_key("ssh-ed25519", comment="hotset lab")
    host.write_private_key(str(work / "host_key"))
    host.write_public_key(str(work / "host_key.pub"))
    client.write_private_key(str(work / "client_key"))
    client.write_public_key(str(work / "client_key.pub"))
    for name in ("host_key", "client_key"):
        (work / name).chmod(0o600)
    (work / "sshd.conf").write_text(_SSHD)
    (work / "initramfs.conf").write_text(_INITRAMFS)
    (work / "initramfs.modules").write_text(_INITRAMFS_MODULES)
    (work / "update-initramfs.conf").write_text(_UPDATE_INITRAMFS)
    (work / "createcluster.conf").write_text(_CREATE_CLUSTER)
    shutil.copy(_RECIPE / "hotset-init", work / "hotset-init")


def _bootstrap(local: Local, work: Path) -> None:
    root = work / "root"
    (work / "boot").mkdir()
    (work / "library").mkdir()
    mode = "root" if os.geteuid() == 0 else "unshare"
    try:
        local.run(bootstrap_argv(work, root, mode), timeout_s=_BUILD_TIMEOUT_S)
    except OSError as error:
        raise PrerequisiteMissingError(f"the lab's image cannot be built here: {error}") from error
    kernel = next((work / "boot").glob("vmlinuz-*"))
    initrd = next((work / "boot").glob("initrd.img-*"))
    kernel.rename(work / "vmlinuz")
    initrd.rename(work / "initrd.img")
    shutil.rmtree(work / "boot")
    (work / "library" / _LIBRARY[0]).chmod(0o755)  # the loader is a program
    disk = work / "root.ext4"
    disk.touch()
    disk.chmod(0o666)  # in the user namespace of the build, mke2fs is somebody else
    make = ["mke2fs", "-q", "-t", "ext4", "-L", "hotset-root", "-d", str(root), str(disk)]
    make.append(f"{_ROOT_SIZE // 1024}k")
    # The same user namespace as the build keeps the files' owners when not root.
    helper = [] if mode == "root" else ["mmdebstrap", "--unshare-helper"]
    local.run([*helper, *make], timeout_s=300)
    disk.chmod(0o644)
    _remove_tree(local, root)
    (work / "recipe.json").write_text(
        json.dumps({"suite": SUITE, "packages": packages()}, indent=1)
    )


def bootstrap_argv(work: Path, root: Path, mode: str) -> list[str]:
    """The mmdebstrap call. HOTSET_DEBIAN_MIRROR names another mirror than Debian's default."""
    argv = _recipe_argv(work, root, mode)
    mirror = os.environ.get("HOTSET_DEBIAN_MIRROR")
    return [*argv, mirror] if mirror else argv


def _recipe_argv(work: Path, root: Path, mode: str) -> list[str]:
    into = '"$1"'
    argv = ["mmdebstrap", f"--mode={mode}", "--variant=minbase", "--quiet"]
    # Named: mmdebstrap finds Debian's keys by itself only on Debian, or where gpg is installed.
    argv += [f"--keyring={keys}" for keys in _HOST_KEYS]
    argv += [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in _SLIM]
    # A build that is cut short is thrown away: no file of it has to be safe from a power cut.
    # What the hooks upload stays, where a package has a file of that name.
    argv += ["--dpkgopt=force-unsafe-io", "--dpkgopt=force-confold"]
    return [
        *argv,
        '--aptopt=APT::Install-Recommends "false"',
        f"--include={','.join(packages())}",
        *_settings_hooks(work, into),
        f"--customize-hook=upload {work}/hotset-init /usr/sbin/hotset-init",
        f"--customize-hook=chmod 755 {into}/usr/sbin/hotset-init",
        f"--customize-hook=upload {work}/sshd.conf /etc/ssh/sshd_config.d/hotset.conf",
        f"--customize-hook=rm -f {into}/etc/ssh/ssh_host_*",
        f"--customize-hook=upload {work}/host_key /etc/ssh/ssh_host_ed25519_key",
        f"--customize-hook=chmod 600 {into}/etc/ssh/ssh_host_ed25519_key",
        f"--customize-hook=mkdir -p -m 700 {into}/root/.ssh",
        f"--customize-hook=upload {work}/client_key.pub /root/.ssh/authorized_keys",
        # Bash takes twice as long to begin, which on an emulated CPU every command would pay for.
        f"--customize-hook=chroot {into} usermod --shell /bin/sh root",
        f"--customize-hook=echo exec bash >> {into}/root/.profile",
        f"--customize-hook=sync-out /boot {work}/boot",
        *(
            f"--customize-hook=download /usr/lib/x86_64-linux-gnu/{name} {work}/library/{name}"
            for name in _LIBRARY
        ),
        f"--customize-hook=download {_KEYRING} {work}/debian-archive-keyring.gpg",
        SUITE,
        str(root),
    ]


def _settings_hooks(work: Path, into: str) -> list[str]:
    """Preset what packages read: the kernel's makes its initrd, once, PostgreSQL's no cluster."""
    return [
        f"--essential-hook=mkdir -p {into}/etc/initramfs-tools/conf.d",
        f"--essential-hook=upload {work}/initramfs.conf /etc/initramfs-tools/conf.d/hotset",
        f"--essential-hook=upload {work}/initramfs.modules /etc/initramfs-tools/modules",
        f"--essential-hook=upload {work}/update-initramfs.conf"
        " /etc/initramfs-tools/update-initramfs.conf",
        f"--essential-hook=mkdir -p {into}/etc/postgresql-common",
        f"--essential-hook=upload {work}/createcluster.conf"
        " /etc/postgresql-common/createcluster.conf",
    ]


def _remove_tree(local: Local, folder: Path) -> None:
    helper = [] if os.geteuid() == 0 else ["mmdebstrap", "--unshare-helper"]
    local.run([*helper, "rm", "-rf", "--one-file-system", str(folder)], check=False)
