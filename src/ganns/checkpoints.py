"""What a long training leaves behind, so that it can go on: one folder, each file whole or absent.

`fleet.json` says what is trained; `group-000.safetensors` holds everything that the next step of a group depends on.
"""

import hashlib
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ganns.feeding import Rows
from ganns.files import replacing, write_atomically

_PIECE = 2**26
_UNFINISHED = (".*.part", ".tmp*")  # ours, and what safetensors writes before it moves it to ours


class Checkpoint:
    """A folder that holds one fleet.

    Args:
        folder: made if it is not there.
        wanted: what is to be trained, as JSON values. If the folder holds another fleet, that is an error which shows
            the difference.
        sizes: members of each group, if the folder is new; an old one has its own.
    """

    def __init__(self, folder: str | os.PathLike, wanted: dict[str, Any], sizes: list[int]):
        self.folder, wanted = Path(folder), json.loads(json.dumps(wanted))
        manifest = self.folder / "fleet.json"
        if manifest.exists():
            found = _parsed(manifest)
            self.sizes: list[int] = found.pop("groups", sizes)
            if differences := _differences(found, wanted):
                raise ValueError(
                    f"checkpoint={str(folder)!r} holds another fleet: {'; '.join(differences)}. Choose another folder, "
                    "or delete that one to begin anew."
                )
        else:
            if groups := sorted(self.folder.glob("group-*.safetensors")):
                raise ValueError(
                    f"checkpoint={str(folder)!r} has {groups[0].name} but no fleet.json to say what it is. Choose "
                    "another folder, or delete that one to begin anew."
                )
            self.sizes = sizes
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(manifest, json.dumps({**wanted, "groups": sizes}, indent=1).encode())
        for pattern in _UNFINISHED:  # left by a process that was killed while it wrote
            for left in self.folder.glob(pattern):
                left.unlink(missing_ok=True)

    def save(self, number: int, state: dict[str, Tensor], *, done: bool) -> None:
        """Keep the state of a group."""
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
        metadata = {"done": json.dumps(done)}
        with replacing(self._path(number)) as temporary:
            save_file(tensors, temporary, metadata)

    def load(self, number: int) -> tuple[dict[str, Tensor], bool] | None:
        """The state of a group and whether it is done; None if there is none yet."""
        path = self._path(number)
        if not path.exists():
            return None
        try:
            with safe_open(path, "pt") as file:
                return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()["done"] == "true"  # noqa: SIM118
        except (SafetensorError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged ({error}); delete it to train that group anew.") from error

    def _path(self, number: int) -> Path:
        return self.folder / f"group-{number:03d}.safetensors"


def own_folder(folder: str | os.PathLike, rank: int, world: int) -> Path:
    """Where one of so many processes keeps its members; an error if others shared out the fleet that is there."""
    whole = Path(folder)
    shared_by = {int(part.name.rpartition("-")[2]) for part in whole.glob("part-*-of-*[0-9]")}
    shared_by |= {1} if (whole / "fleet.json").exists() else set()
    if others := sorted(shared_by - {world}):
        raise ValueError(
            f"checkpoint={str(folder)!r} holds a fleet that {others[0]} process{'es' * (others[0] > 1)} trained, and "
            f"here {'are' if world > 1 else 'is'} {world}. Go on with as many, or choose another folder."
        )
    return whole if world == 1 else whole / f"part-{rank}-of-{world}"


class Interrupt:
    """Holds back Ctrl-C until a step is whole, so that what is then saved is whole too; a second one acts at once.

    Only in the main thread; elsewhere Python delivers no signals.
    """

    def __init__(self, *, enabled: bool):
        self.asked = False
        self._enabled = enabled and threading.current_thread() is threading.main_thread()

    def __enter__(self) -> "Interrupt":
        if self._enabled:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        if self._enabled:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: object) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, self._before)


def fingerprint(rows: Rows) -> str:
    """Short name of the data's content."""
    digest = hashlib.blake2b(digest_size=16)
    for tensor in rows:
        digest.update(f"{tuple(tensor.shape)}{tensor.dtype}".encode())
        content = tensor.detach().cpu().contiguous().view(torch.uint8).flatten()
        for piece in content.split(_PIECE):
            digest.update(piece.numpy().data)
    return digest.hexdigest()


def _parsed(manifest: Path) -> dict[str, Any]:
    try:
        found = json.loads(manifest.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{manifest} is damaged ({error}); delete its folder to begin anew.") from error
    if not isinstance(found, dict):
        raise ValueError(f"{manifest} does not describe a fleet; choose another folder.")
    return found


def _differences(found: Any, wanted: Any, name: str = "") -> list[str]:
    """Where two JSON values differ, in words; the first few."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        keys = sorted({*found, *wanted})
        return [d for key in keys for d in _differences(found.get(key), wanted.get(key), f"{name}.{key}".strip("."))][
            :5
        ]
    if isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        pairs = enumerate(zip(found, wanted, strict=True))
        return [d for i, (a, b) in pairs for d in _differences(a, b, f"{name}[{i}]")][:5]
    if found == wanted:
        return []
    if isinstance(found, list) and isinstance(wanted, list):
        return [f"{name} has {len(found)} entries there, {len(wanted)} here"]
    return [f"{name} is {found!r} there, {wanted!r} here"]
