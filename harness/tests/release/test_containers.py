"""The container image's writer, the compose file beside it, and what the image refuses."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from hotset import __version__
from hotset.core import environment, errors
from hotset.core.errors import PrerequisiteError
from hotset.core.extras import Extra
from hotset.core.machines import names as connect
from hotset.lab import lab
from release import container, oci

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "containers"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVER: dict[str, Any] = yaml.safe_load((FOLDER / "server.yaml").read_text())
SERVICES = COMPOSE["services"]
EPOCH = 1_700_000_000


def root_file_system(file: Path, names: list[str], owner: str) -> Path:
    with tarfile.open(file, "w") as archive:
        for number, name in enumerate(names):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.uname = 4, EPOCH + 1000 * number, owner
            archive.addfile(entry, io.BytesIO(b"held"))
    return file


@pytest.fixture
def image() -> oci.Image:
    return container.describe("x86_64", EPOCH, [Extra.CONSOLE])


def blobs(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as archive:
        return {
            one.name: opened.read()
            for one in archive.getmembers()
            if (opened := archive.extractfile(one))
        }


def test_the_same_files_make_the_same_image_and_every_digest_is_right(
    image: oci.Image, tmp_path: Path
) -> None:
    """In another order, of another owner's name, and unpacked at another time."""
    one = root_file_system(tmp_path / "one", ["./usr/b", "./a", "./dev/null"], "me")
    other = root_file_system(tmp_path / "other", ["./a", "./dev/null", "./usr/b"], "you")
    found = []
    for number, root in enumerate((one, other)):
        into = tmp_path / f"image-{number}.tar"
        found.append((oci.write(image, root, into, EPOCH, container.LEFT_OUT), into.read_bytes()))
    assert found[0] == found[1]
    held = blobs(tmp_path / "image-0.tar")
    for name, blob in held.items():
        if name.startswith("blobs/"):
            assert hashlib.sha256(blob).hexdigest() == name.rpartition("/")[2]
    (told,) = json.loads(held["index.json"])["manifests"]
    assert told["digest"] == found[0][0]
    manifest = json.loads(held[f"blobs/sha256/{told['digest'][7:]}"])
    (docker,) = json.loads(held["manifest.json"])
    assert docker["Config"].endswith(manifest["config"]["digest"][7:])
    (layer,) = docker["Layers"]
    assert layer.endswith(manifest["layers"][0]["digest"][7:])
    with tarfile.open(fileobj=io.BytesIO(held[layer])) as files:
        assert files.getnames() == ["a", "usr/b"]
        assert max(one.mtime for one in files) == EPOCH


def test_the_image_has_a_user_of_its_own_a_health_check_and_says_what_it_is(
    image: oci.Image,
) -> None:
    assert image.config["User"] == f"{container.USER}:0"
    assert image.config["Healthcheck"]["Test"] == ["CMD", "python3", "-c", container.ALIVE]
    assert image.annotations["org.opencontainers.image.version"] == __version__
    assert set(image.annotations) == set(image.config["Labels"])
    assert not [one for one in image.config["Env"] if "PASSWORD" in one or "TOKEN" in one]


def test_the_tables_of_iconv_stay() -> None:
    """Without ISO 8859-1 FreeTDS connects to nothing, and does not say why."""
    assert not container.LEFT_OUT.match("usr/lib/x86_64-linux-gnu/gconv/ISO8859-1.so")


def test_umoci_reads_the_layout(image: oci.Image, tmp_path: Path) -> None:
    """Another's reader of the format."""
    if shutil.which("umoci") is None:
        pytest.skip("umoci is not installed (apt-get install umoci)")
    root = root_file_system(tmp_path / "root", ["./a"], "me")
    oci.write(image, root, tmp_path / "image.tar", EPOCH, container.LEFT_OUT)
    (tmp_path / "layout").mkdir()
    subprocess.run(["tar", "-xf", "image.tar", "-C", "layout"], check=True, cwd=tmp_path)
    argv = ["umoci", "unpack", "--rootless", "--image", f"layout:{__version__}", "bundle"]
    done = subprocess.run(argv, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bundle/rootfs/a").read_text() == "held"


@pytest.mark.parametrize("more", [(), ("server.yaml",)])
def test_compose_takes_the_files(more: tuple[str, ...]) -> None:
    compose = next(
        (argv for argv in (["docker", "compose"], ["docker-compose"]) if works(argv)), None
    )
    if compose is None:
        pytest.skip("no docker compose here")
    files = [word for one in ("compose.yaml", *more) for word in ("-f", str(FOLDER / one))]
    argv = [*compose, *files, f"--project-directory={FOLDER}", "config"]
    done = subprocess.run(
        argv, check=False, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}
    )
    assert (done.returncode == 0) == (not more), done.stderr
    if more:
        assert "set HOTSET_MACHINE, such as ssh://root@db1" in done.stderr


def works(argv: list[str]) -> bool:
    if shutil.which(argv[0]) is None:
        return False
    return not subprocess.run([*argv, "version"], capture_output=True, check=False).returncode


def test_the_compose_file_runs_this_image_as_the_image_says(image: oci.Image) -> None:
    own = SERVICES["hotset"]
    assert own["image"] == f"hotset:${{HOTSET_VERSION:-{__version__}}}"
    assert own["healthcheck"]["test"] == image.config["Healthcheck"]["Test"]
    assert own["read_only"] is True
    assert f"hotset-state:{container.HOME}" in own["volumes"]


def test_each_port_is_on_the_loopback_and_each_secret_is_a_file() -> None:
    for name, service in SERVICES.items():
        assert all(one.startswith("127.0.0.1:") for one in service.get("ports", ())), name
        for variable in service.get("environment", {}):
            assert not re.search(r"PASSWORD$|TOKEN$|SECRET$", variable), variable
    named = {one for service in SERVICES.values() for one in service.get("secrets", ())}
    assert named == set(COMPOSE["secrets"])
    assert set(SERVER["services"]["hotset"]["secrets"]) == set(SERVER["secrets"])
    for one in (COMPOSE["secrets"] | SERVER["secrets"]).values():
        assert one["file"].startswith("./secrets/")


def test_what_is_mounted_is_there_and_leads_from_one_to_the_next() -> None:
    mounted = {
        target: (FOLDER / source).resolve()
        for service in SERVICES.values()
        for source, target, *_ in (one.split(":") for one in service["volumes"])
        if source.startswith(".")
    }
    assert all(file.is_file() for file in mounted.values())
    prometheus = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    (job,) = prometheus["scrape_configs"]
    assert job["static_configs"][0]["targets"] == [f"{SERVICES['hotset']['hostname']}:8480"]
    assert job["authorization"]["credentials_file"] == "/run/secrets/metrics-token"
    assert f"/etc/prometheus/{prometheus['rule_files'][0]}" in mounted
    (provider,) = yaml.safe_load((FOLDER / "grafana/dashboards.yaml").read_text())["providers"]
    (dashboard,) = [one for one in mounted if one.startswith(provider["options"]["path"])]
    assert mounted[dashboard] == ROOT / "reports/grafana/hotset.json"
    (source,) = yaml.safe_load((FOLDER / "grafana/datasource.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (variable,) = [
        one
        for one in json.loads(mounted[dashboard].read_text())["templating"]["list"]
        if one["type"] == "datasource"
    ]
    assert variable["query"] == source["type"]


def test_promtool_takes_the_configuration(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (apt-get install prometheus)")
    text = (FOLDER / "prometheus.yml").read_text()
    (tmp_path / "token").touch()
    (tmp_path / "prometheus.yml").write_text(
        text.replace("/run/secrets/metrics-token", str(tmp_path / "token"))
    )
    shutil.copy(ROOT / "reports/grafana/hotset-rules.yml", tmp_path)
    argv = ["promtool", "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", ["compose.yaml", "server.yaml"])
def test_every_variable_of_the_compose_files_is_explained_there(file: str) -> None:
    text = (FOLDER / file).read_text()
    used = set(re.findall(r"\$\{([A-Z_]+)", text))
    assert used == set(re.findall(r"^#   ([A-Z_]+) ", text, re.MULTILINE))


def test_in_the_container_what_needs_the_host_says_so_and_how_it_is_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(environment.CONTAINER, "1")
    with pytest.raises(PrerequisiteError) as refused, connect.open_machine("local"):
        pass
    said = errors.of_command_line(refused.value)
    assert said.startswith("disks and devices are the host's, and this is a container")
    assert said.endswith("to reach them from here: add --machine ssh://root@HOST")
    with pytest.raises(
        PrerequisiteError, match=r"^the lab's kernel, disks and FUSE are the host's"
    ):
        lab.choose("auto")
    assert environment.of_server({environment.CONTAINER: "1"})[environment.CONTAINER] == "1"
