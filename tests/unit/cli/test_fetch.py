"""What comes from a volume is hostile until it has been checked."""

import hashlib
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rltrain.api.errors import CheckpointUnusable
from rltrain.cli.fetch import _NO_BEST, _NO_CHECKPOINT, _SCRIPT, Fetched, _conclude, unpack, verify
from unit.cli.conftest import JOBS, PODS, ApiServer, Command, condition, job


def run_directory(folder: Path, *steps: int) -> Path:
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "manifest.yaml").write_text("kind: RLTrainingJob\n")
    (folder / "results.jsonl").write_text("{}\n")
    for step in steps:
        checkpoint = folder / f"checkpoints/{step:012d}-0001"
        checkpoint.mkdir()
        (checkpoint / "policy.npz").write_bytes(b"weights of %d" % step)
        data = (checkpoint / "policy.npz").read_bytes()
        recorded = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        marker = {"env_steps": step, "trained_steps": 7, "files": {"policy.npz": recorded}}
        (checkpoint / "checkpoint.json").write_text(json.dumps(marker))
    return folder


def archived(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    """What the script that runs in a pod makes of a run directory."""
    return subprocess.run([sys.executable, "-c", _SCRIPT, str(folder), *words], capture_output=True, timeout=60)


def test_newest_whole_checkpoint_comes_with_manifest_and_results(tmp_path: Path) -> None:
    source = run_directory(tmp_path / "run", 100, 200, 300)
    (source / "checkpoints/000000000300-0001/checkpoint.json").unlink()
    (source / "checkpoints/.saving-000000000400").mkdir()

    unpack(io.BytesIO(archived(source).stdout), tmp_path / "copy")

    copied = {str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*") if path.is_file()}
    checkpoint = "checkpoints/000000000200-0001"
    assert copied == {"manifest.yaml", "results.jsonl", f"{checkpoint}/policy.npz", f"{checkpoint}/checkpoint.json"}
    assert verify(tmp_path / "copy") == Fetched("000000000200-0001", env_steps=200, trained_steps=7)


def test_the_best_checkpoint_comes_where_it_is_asked_for_and_there_is_one(tmp_path: Path) -> None:
    source = run_directory(tmp_path / "run", 100, 200)
    assert archived(source, "best").returncode == _NO_BEST
    (source / "checkpoints/best.json").write_text('{"checkpoint": "000000000100-0001"}')
    unpack(io.BytesIO(archived(source, "best").stdout), tmp_path / "copy")
    assert verify(tmp_path / "copy").env_steps == 100
    (source / "checkpoints/best.json").write_text('{"checkpoint": "../manifest.yaml"}')
    assert archived(source, "best").returncode == _NO_BEST


@pytest.mark.parametrize("made", [True, False])
def test_run_directory_without_a_checkpoint_has_an_exit_code_of_its_own(tmp_path: Path, made: bool) -> None:
    if made:
        run_directory(tmp_path / "run")
    else:
        (tmp_path / "run").mkdir()
    assert archived(tmp_path / "run").returncode == _NO_CHECKPOINT


@pytest.mark.parametrize(
    "damage", [lambda data: b"X" + data[1:], lambda data: data[:-1], lambda data: b""], ids=["changed", "cut", "empty"]
)
def test_part_that_is_not_as_it_was_saved_is_found(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    folder = run_directory(tmp_path / "run", 100)
    part = folder / "checkpoints/000000000100-0001/policy.npz"
    part.write_bytes(damage(part.read_bytes()))

    with pytest.raises(CheckpointUnusable, match=r"policy.npz of checkpoint 000000000100-0001"):
        verify(folder)


def test_part_outside_of_the_checkpoint_is_refused(tmp_path: Path) -> None:
    folder = run_directory(tmp_path / "run", 100)
    marker = folder / "checkpoints/000000000100-0001/checkpoint.json"
    data = (folder / "manifest.yaml").read_bytes()
    recorded = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    marker.write_text(json.dumps({"env_steps": 1, "trained_steps": 1, "files": {"../../manifest.yaml": recorded}}))

    with pytest.raises(CheckpointUnusable):
        verify(folder)


def tarred(member: tarfile.TarInfo, data: bytes = b"") -> io.BytesIO:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    target.seek(0)
    return target


@pytest.mark.parametrize("path", ["../evil", "a/../../evil"])
def test_path_that_leads_out_of_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(CheckpointUnusable):
        unpack(tarred(tarfile.TarInfo(path), b"x"), tmp_path / "copy")

    assert [found for found in tmp_path.rglob("*") if found.is_file()] == []


def test_absolute_path_stays_inside(tmp_path: Path) -> None:
    unpack(tarred(tarfile.TarInfo(f"{tmp_path}/evil"), b"x"), tmp_path / "copy")

    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("policy.npz")
    member.type, member.linkname = kind, "/etc/passwd"

    with pytest.raises(CheckpointUnusable, match="neither file nor folder"):
        unpack(tarred(member), tmp_path / "copy")


def test_archive_that_is_cut_off_is_told(tmp_path: Path) -> None:
    whole = archived(run_directory(tmp_path / "run", 100)).stdout
    for number, part in enumerate((b"", whole[: len(whole) // 2], b"no archive at all")):
        with pytest.raises(CheckpointUnusable, match="isn't whole"):
            unpack(io.BytesIO(part), tmp_path / str(number))


def test_what_was_fetched_is_told_to_people_and_machines() -> None:
    fetched = Fetched("000000000200-0001", env_steps=200, trained_steps=7)
    assert _conclude(Path("x"), fetched, None) == "x: checkpoint at 200 steps (rltrain evaluate x plays it)"
    assert "at 7 trained steps" in _conclude(Path("x"), Fetched("000000000007-0001", 0, 7), None)
    told = {"folder": "x", "checkpoint": "x/checkpoints/000000000200-0001", "env_steps": 200, "trained_steps": 7}
    assert json.loads(_conclude(Path("x"), fetched, "json")) == told


def test_folder_that_holds_something_is_left_alone(rltrain: Command, api: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")

    done = rltrain("fetch", "cartpole", "--out", tmp_path)

    assert done.code == 2
    assert "give another --out" in done.err
    assert api.seen == []


def test_job_that_never_had_a_head_says_why(rltrain: Command, api: ApiServer, tmp_path: Path) -> None:
    refused = condition("Accepted", "False", "InvalidManifest", "spec.config: buffer_size is too small")
    api.put(f"{JOBS}/cartpole", job(conditions=[refused]))

    done = rltrain("fetch", "cartpole", "--out", tmp_path / "out")

    assert done.code == 1
    assert "buffer_size is too small" in done.err
    assert list(tmp_path.glob("out*")) == []


def test_reader_pod_is_deleted_when_it_does_not_start(rltrain: Command, api: ApiServer, tmp_path: Path) -> None:
    api.put(f"{JOBS}/cartpole", job())
    container = {"name": "rltrain", "image": "trainer:1", "securityContext": {"readOnlyRootFilesystem": True}}
    template = {"spec": {"containers": [container], "securityContext": {"runAsUser": 1000}}}
    api.put("/apis/batch/v1/namespaces/default/jobs/cartpole-head", {"spec": {"template": template}})
    made: list[str] = []

    def created(method: str, target: str, body: object) -> tuple[int, object]:
        if method == "POST" and isinstance(body, dict):
            name = body["metadata"]["name"]
            made.append(name)
            state = {"terminated": {"reason": "StartError", "message": "no python in the image"}}
            statuses = [{"name": "rltrain", "state": state}]
            api.put(f"{PODS}/{name}", {**body, "status": {"phase": "Failed", "containerStatuses": statuses}})
            assert body["spec"]["containers"][0]["volumeMounts"][0]["readOnly"] is True
            assert body["spec"]["securityContext"] == {"runAsUser": 1000}
            return 201, body
        return type(api).answer(api, method, target, body)

    api.answer = created  # type: ignore[method-assign]
    done = rltrain("fetch", "cartpole", "--out", tmp_path / "out")

    assert done.code == 1
    assert "no python in the image" in done.err
    assert made
    assert not [path for path in api.objects if path.startswith(PODS)]
