"""Writes a container image as one tar, without a daemon: an OCI layout, which also has the index of
Docker's older format, as `docker save` writes both.

The two share their blobs. OCI's image specification knows no health check; Docker's has it as a
field of the same configuration, which OCI's readers have to ignore (image-spec, config.md). So it
is there for Docker, and for Podman where it loads Docker's format; who runs OCI images otherwise
has to be told (`--health-cmd`, a probe of Kubernetes).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

from .programs import ARCHITECTURES

_OCI = "application/vnd.oci.image"
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Image:
    """``created``: RFC 3339; ``config``: as OCI's image configuration has it."""

    name: str
    tag: str
    architecture: str
    created: str
    made_by: str
    config: Mapping[str, Any]
    annotations: Mapping[str, str] = field(default_factory=dict)


def health(test: list[str], interval_s: int, timeout_s: int, retries: int) -> dict[str, object]:
    """Docker's health check; it starts asking at once, and fails not before ``retries``."""
    return {
        "Test": ["CMD", *test],
        "Interval": interval_s * _SECOND,
        "Timeout": timeout_s * _SECOND,
        "StartPeriod": interval_s * _SECOND,
        "Retries": retries,
    }


def write(image: Image, root: Path, into: Path, epoch: int, left_out: re.Pattern[str]) -> str:
    """Write the image; returns its digest, ``sha256:…``. The same files make the same bytes.

    :param root: a tar of its root file system.
    :param left_out: of its files, those whose path begins so.
    :param epoch: no file is newer.
    """
    plain = io.BytesIO()
    with root.open("rb") as opened:
        normalise(opened, plain, epoch, left_out)
    # Python's own: the gzip of another computer may pack otherwise.
    layer = gzip.compress(plain.getvalue(), 9, mtime=0)
    config = _config(image, plain.getvalue())
    manifest = _manifest(image, config, layer)
    docker = {
        "Config": _path(config),
        "RepoTags": [f"{image.name}:{image.tag}"],
        "Layers": [_path(layer)],
    }
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _index(image, manifest),
        "manifest.json": _json([docker]),
        **{_path(blob): blob for blob in (config, manifest, layer)},
    }
    with tarfile.open(into, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, held in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(held), epoch, 0o644
            archive.addfile(entry, io.BytesIO(held))
    return _digest(manifest)


def _config(image: Image, files: bytes) -> bytes:
    return _json(
        {
            "created": image.created,
            "architecture": ARCHITECTURES[image.architecture],
            "os": "linux",
            "config": image.config,
            "rootfs": {"type": "layers", "diff_ids": [_digest(files)]},
            "history": [{"created": image.created, "created_by": image.made_by}],
        }
    )


def _manifest(image: Image, config: bytes, layer: bytes) -> bytes:
    return _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_OCI}.manifest.v1+json",
            "config": _descriptor(f"{_OCI}.config.v1+json", config),
            "layers": [_descriptor(f"{_OCI}.layer.v1.tar+gzip", layer)],
            "annotations": image.annotations,
        }
    )


def _index(image: Image, manifest: bytes) -> bytes:
    named = {
        **_descriptor(f"{_OCI}.manifest.v1+json", manifest),
        "annotations": {"org.opencontainers.image.ref.name": image.tag},
        "platform": {"architecture": ARCHITECTURES[image.architecture], "os": "linux"},
    }
    media = f"{_OCI}.index.v1+json"
    return _json({"schemaVersion": 2, "mediaType": media, "manifests": [named]})


def normalise(root: BinaryIO, into: BinaryIO, epoch: int, left_out: re.Pattern[str]) -> None:
    """A tar with all that does not matter made equal: order, names of owners, times."""
    with (
        tarfile.open(fileobj=root) as read,
        tarfile.open(fileobj=into, mode="w", format=tarfile.PAX_FORMAT) as written,
    ):
        for name, entry in sorted(_entries(read, left_out), key=itemgetter(0)):
            entry.name, entry.uname, entry.gname = name, "", ""
            entry.mtime, entry.pax_headers = min(int(entry.mtime), epoch), {}
            written.addfile(entry, read.extractfile(entry) if entry.isreg() else None)


def _entries(
    read: tarfile.TarFile, left_out: re.Pattern[str]
) -> Iterator[tuple[str, tarfile.TarInfo]]:
    for entry in read.getmembers():
        name = entry.name.removeprefix("./").strip("/")
        if name and not left_out.match(name):
            yield name, entry


def _descriptor(media_type: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _path(blob: bytes) -> str:
    return f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}"


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
