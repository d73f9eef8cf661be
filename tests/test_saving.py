"""What is saved comes back, whole; what was changed is refused in one sentence."""

import json
import os
import pickle
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ganns import saving
from ganns.saving import read_model, write_model

DESCRIPTION = {"kind": "thing", "numbers": [1, 2.5, 1e-300], "names": {"ä": None}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_model(tmp_path / "model", DESCRIPTION, tensors())
    return tmp_path / "model"


def tensors() -> dict[str, torch.Tensor]:
    numbers = torch.arange(12, dtype=torch.float64).reshape(3, 4)
    return {"turned": numbers.T, "part": numbers[1], "none": torch.zeros(0, 3), "whole": torch.tensor([2**60])}


def rewritten(folder: Path, **changes) -> None:
    """Change the description, and its checksum with it, as a later version or a forger would."""
    content = {**json.loads((folder / "model.json").read_text()), **changes}
    content["sha256"] = saving._checksum(content)
    (folder / "model.json").write_text(json.dumps(content))


def test_what_is_written_is_read(folder: Path):
    description, found = read_model(folder, "other", "thing")
    assert description == DESCRIPTION
    assert found.keys() == tensors().keys()
    for name, tensor in tensors().items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=0)


def test_a_model_is_replaced_and_nothing_is_left_beside_it(folder: Path):
    write_model(folder, {"kind": "thing", "new": True}, {})
    assert read_model(folder, "thing") == ({"kind": "thing", "new": True}, {})
    assert os.listdir(folder.parent) == ["model"]


@pytest.mark.parametrize("broken", ["os.fsync", "json.dumps"])
def test_a_failure_leaves_the_old_model_and_no_half_of_the_new(folder: Path, monkeypatch, broken: str):
    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(broken, full)
        for name in ("model", "fresh"):
            with pytest.raises(OSError, match="No space left"):
                write_model(folder.parent / name, {"kind": "thing"}, {})
    assert os.listdir(folder.parent) == ["model"]
    assert read_model(folder, "thing")[0] == DESCRIPTION


def test_the_old_model_returns_if_the_new_one_cannot_take_its_place(folder: Path, monkeypatch):
    move = Path.replace

    def refusing(self: Path, target: Path):
        if target == folder and not self.name.endswith(".old"):
            raise PermissionError("no")
        return move(self, target)

    monkeypatch.setattr(Path, "replace", refusing)
    with pytest.raises(PermissionError):
        write_model(folder, {"kind": "thing"}, {})
    assert os.listdir(folder.parent) == ["model"]
    assert read_model(folder, "thing")[0] == DESCRIPTION


def test_what_is_no_model_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("years")
    for path in (tmp_path, tmp_path / "thesis.tex"):
        with pytest.raises(FileExistsError, match="is not a model; choose another place"):
            write_model(path, DESCRIPTION, {})
    assert (tmp_path / "thesis.tex").read_text() == "years"


def test_a_missing_folder_or_file_is_named(folder: Path):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        read_model(folder.parent / "nowhere", "thing")
    with pytest.raises(FileNotFoundError, match=r"has no model\.json"):
        read_model(folder.parent, "thing")
    (folder / "weights.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"weights\.safetensors is missing"):
        read_model(folder, "thing")


def test_another_kind_is_refused(folder: Path):
    with pytest.raises(ValueError, match="holds a 'thing', but 'cat' or 'dog' is needed here"):
        read_model(folder, "cat", "dog")


def test_a_later_version_is_named(folder: Path):
    rewritten(folder, format=saving.FORMAT + 1, ganns="9.1")
    with pytest.raises(ValueError, match=r"was saved by ganns 9.1 in format 2, .* upgrade"):
        read_model(folder, "thing")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"format": "1"}', b"\xff\xfe", b"[" * 100_000])
def test_a_foreign_description_is_refused(folder: Path, content: bytes):
    (folder / "model.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"model.json (is not JSON|does not describe a model)"):
        read_model(folder, "thing")


@pytest.mark.parametrize("changes", [{"weights": None}, {"weights": {}}, {"kind": None}])
def test_a_forged_description_is_refused(folder: Path, changes: dict):
    rewritten(folder, **changes)
    with pytest.raises(ValueError, match="does not describe a model"):
        read_model(folder, "thing")


def test_cut_weights_are_refused(folder: Path):
    file = folder / "weights.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"it was cut or changed: copy it again"):
        read_model(folder, "thing")


def test_a_pickle_in_place_of_weights_is_not_run(folder: Path):
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(folder / "harm"),)

    harm = pickle.dumps(Harm())
    (folder / "weights.safetensors").write_bytes(harm)
    rewritten(folder, weights={"bytes": len(harm), "sha256": saving._digest(harm)})
    with pytest.raises(ValueError, match="is not a safetensors file"):
        read_model(folder, "thing")
    assert not (folder / "harm").exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(["model.json", "weights.safetensors"]), place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_any_changed_bit_is_noticed(folder: Path, name: str, place: int, bit: int):
    file = folder / name
    before = file.read_bytes()
    changed = bytearray(before)
    changed[place % len(changed)] ^= 1 << bit
    file.write_bytes(changed)
    try:
        description, _ = read_model(folder, "thing")
        assert description == DESCRIPTION  # white space alone may differ
        assert name == "model.json"
    except ValueError:
        pass
    finally:
        file.write_bytes(before)


@pytest.mark.parametrize("kind", [None, 3])
def test_a_description_needs_a_kind(tmp_path: Path, kind: object):
    with pytest.raises(ValueError, match=f"description has kind={kind}"):
        write_model(tmp_path / "model", {"kind": kind}, {})
