"""Models on disk: a folder of JSON and safetensors, written whole or not at all, and read without running anything.

`model.json` describes the model and holds checksums of itself and of `weights.safetensors`. They find damage and
changes; they are no signature, and do not say who wrote the folder.
"""

import hashlib
import json
import os
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

FORMAT = 1
_DESCRIPTION, _WEIGHTS = "model.json", "weights.safetensors"


def write_model(path: str | os.PathLike, description: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write a model as a folder; a model that is there already is replaced, anything else is left alone.

    The folder is written beside its place and then moved there: a full disk or a kill leaves no half of one.

    Args:
        path: the folder.
        description: JSON values without NaN or infinity, among them "kind", which `read_model` asks for.
        tensors: by name.
    """
    folder = Path(path)
    if not isinstance(description.get("kind"), str):
        raise ValueError(f"description has kind={description.get('kind')!r}; name what the folder will hold.")
    if folder.exists() and not _replaceable(folder):
        raise FileExistsError(f"{folder} exists and is not a model; choose another place, or remove it first.")
    weights = safetensors.torch.save({name: t.detach().cpu().contiguous() for name, t in tensors.items()})
    content = {
        "format": FORMAT,
        "ganns": version("ganns"),
        "weights": {"bytes": len(weights), "sha256": _digest(weights)},
        **description,
    }
    content["sha256"] = _checksum(content)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    previous = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    try:
        temporary.mkdir(parents=True)
        _write(temporary / _WEIGHTS, weights)
        _write(temporary / _DESCRIPTION, json.dumps(content, indent=1, allow_nan=False).encode())
        if folder.exists():
            folder.replace(previous)
        temporary.replace(folder)
    except BaseException:
        if previous.exists() and not folder.exists():
            previous.replace(folder)
        raise
    finally:
        for left in (temporary, previous):
            shutil.rmtree(left, ignore_errors=True)


def read_model(path: str | os.PathLike, *kinds: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The description and tensors that `write_model` wrote, or an error that says why they cannot be trusted.

    Args:
        path: the folder.
        kinds: what it may hold.
    """
    folder = Path(path)
    content = _description(folder)
    if content["kind"] not in kinds:
        raise ValueError(f"{folder} holds a {content['kind']!r}, but {' or '.join(map(repr, kinds))} is needed here.")
    file = folder / _WEIGHTS
    if not file.is_file():
        raise FileNotFoundError(f"{file} is missing; copy the whole folder again.")
    weights, expected = file.read_bytes(), content.pop("weights")
    if len(weights) != expected["bytes"]:
        raise ValueError(
            f"{file} has {len(weights)} bytes instead of {expected['bytes']}; it was cut or changed: copy it again."
        )
    if _digest(weights) != expected["sha256"]:
        raise ValueError(f"{file} is not what was saved (its checksum differs); copy it again.")
    try:
        tensors = safetensors.torch.load(weights)
    except SafetensorError as error:
        raise ValueError(f"{file} is not a safetensors file ({error}); copy it again.") from error
    return {name: value for name, value in content.items() if name not in ("format", "ganns", "sha256")}, tensors


def _description(folder: Path) -> dict[str, Any]:
    """The content of model.json, checked."""
    if not folder.exists():
        raise FileNotFoundError(f"{folder} does not exist; give the folder that a model was saved to.")
    file = folder / _DESCRIPTION
    if not file.is_file():
        raise FileNotFoundError(f"{folder} has no {_DESCRIPTION}; give the folder that a model was saved to.")
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not JSON ({error}); copy it again.") from error
    foreign = f"{file} does not describe a model of ganns; give the folder that a model was saved to."
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise ValueError(foreign)
    if content["format"] > FORMAT:
        raise ValueError(
            f"{folder} was saved by ganns {content.get('ganns')} in format {content['format']}, and this is ganns "
            f"{version('ganns')}, which reads formats up to {FORMAT}; upgrade with pip install -U ganns."
        )
    if content.get("sha256") != _checksum(content):
        raise ValueError(f"{file} is not what was saved (its checksum differs); copy it again.")
    weights = content.get("weights")
    if not isinstance(content.get("kind"), str) or not isinstance(weights, dict) or set(weights) != {"bytes", "sha256"}:
        raise ValueError(foreign)
    return content


def _checksum(content: dict[str, Any]) -> str:
    """SHA-256 of everything in a description but the checksum itself."""
    rest = {name: value for name, value in content.items() if name != "sha256"}
    return _digest(json.dumps(rest, sort_keys=True).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _replaceable(folder: Path) -> bool:
    """Whether a folder holds a model and nothing else, or nothing."""
    return folder.is_dir() and {file.name for file in folder.iterdir()} <= {_DESCRIPTION, _WEIGHTS}


def _write(file: Path, content: bytes) -> None:
    with open(file, "xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
