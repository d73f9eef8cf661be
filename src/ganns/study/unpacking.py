"""From the original files to arrays.

Members of an archive are read by their exact name, up to a limit, and into memory only: no path in it is ever used.
"""

import gzip
import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from ganns.study.catalogue import Arrays, Dataset
from ganns.study.checking import only_value_errors
from ganns.study.originals import Member, Source

_PICTURE = 1 << 20  # bytes of one compressed picture at most
_SIDE = 4096  # pixels of its longer side at most
_FACE = re.compile(r"(?:\./)?UTKFace/((\d{1,3})_[^/]*\.jpg)")  # <age>_<gender>_<race>_<time>.jpg.chip.jpg


def unpack(dataset: Dataset, files: Sequence[Path]) -> Arrays:
    """The arrays that a dataset's original files hold; ValueError if they cannot be read.

    Args:
        dataset: the entry of the catalogue; of the two wine datasets the one for regression.
        files: in the order of `dataset.sources`; for UTKFace the archive or the folder.
    """
    with only_value_errors():
        return _READERS[dataset.stem or dataset.name](dataset, files)


def contents(source: Source, file: Path) -> list[bytes]:
    """The bytes of the source's members, each of the size and with the checksum that it should have."""
    if file.name.endswith(".zip"):
        with zipfile.ZipFile(file) as archive:
            return [_from_zip(archive, member) for member in source.members]
    if file.name.endswith(".tar.gz"):
        with tarfile.open(file, "r:gz") as archive:
            return [_from_tar(archive, archive.getmember(member.name), member) for member in source.members]
    with gzip.open(file) as content:
        return [_bounded(content, member) for member in source.members]


def _from_zip(archive: zipfile.ZipFile, member: Member) -> bytes:
    with archive.open(member.name) as content:
        return _bounded(content, member)


def _from_tar(archive: tarfile.TarFile, found: tarfile.TarInfo, member: Member) -> bytes:
    content = archive.extractfile(found) if found.isreg() else None
    if content is None:
        raise ValueError(f"{member.name} in the archive is no file")
    return _bounded(content, member)


def _bounded(content: IO[bytes] | gzip.GzipFile, member: Member) -> bytes:
    data = content.read(member.limit + 1)
    if len(data) > member.limit:
        raise ValueError(f"{member.name} in the archive has more than {member.limit} bytes")
    algorithm, _, wanted = (member.checksum or "").partition(":")
    if wanted and (found := hashlib.new(algorithm, data).hexdigest()) != wanted:
        raise ValueError(f"{member.name} in the archive has the {algorithm} {found}, not {wanted}")
    return data


def _contents(dataset: Dataset, files: Sequence[Path]) -> list[bytes]:
    return [data for source, file in zip(dataset.sources, files, strict=True) for data in contents(source, file)]


def _numbers(text: bytes, delimiter: str | None = None, header: int = 0) -> np.ndarray:
    if not text.strip():
        raise ValueError("a table in it is empty")
    return np.loadtxt(io.BytesIO(text), np.float32, comments=None, delimiter=delimiter, skiprows=header, ndmin=2)


def _spaced(dataset: Dataset, files: Sequence[Path]) -> Arrays:
    """Airfoil and Yacht: columns apart by white space, the target last."""
    [text] = _contents(dataset, files)
    rows = _numbers(text)
    return Arrays(rows[:, :-1].copy(), rows[:, -1].copy())


def _wine(dataset: Dataset, files: Sequence[Path]) -> Arrays:
    """The red wines, then the white ones."""
    rows = np.concatenate([_numbers(text, ";", header=1) for text in _contents(dataset, files)])
    return Arrays(rows[:, :-1].copy(), rows[:, -1].copy())


def _year(dataset: Dataset, files: Sequence[Path]) -> Arrays:
    """The year first; the published test rows are the last ones."""
    [text] = _contents(dataset, files)
    rows, train = _numbers(text, ","), dataset.train_rows
    x, y = rows[:, 1:].copy(), rows[:, 0].copy()
    return Arrays(x[:train], y[:train], x[train:], y[train:])


def _cifar(dataset: Dataset, files: Sequence[Path]) -> Arrays:
    """A picture is two bytes, coarse and fine label, and three planes of colour."""
    parts = []
    for data in _contents(dataset, files):
        rows = np.frombuffer(data, np.uint8).reshape(-1, 2 + dataset.features)
        height, width, channels = dataset.shape
        planes = rows[:, 2:].reshape(-1, channels, height, width)
        parts += [np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), rows[:, 1].astype(np.int64)]
    return Arrays(*parts)


def _fashion(dataset: Dataset, files: Sequence[Path]) -> Arrays:
    x, y, test_x, test_y = (_idx(data) for data in _contents(dataset, files))
    return Arrays(x[..., None], y.astype(np.int64), test_x[..., None], test_y.astype(np.int64))


def _idx(data: bytes) -> np.ndarray:
    """Two zeros, the type (8: bytes), the number of axes, the axes' lengths, the values."""
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise ValueError("a file that should be IDX is not")
    shape = np.frombuffer(data, ">u4", count=data[3], offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + shape.nbytes).reshape(shape).copy()


def _tiny(dataset: Dataset, files: Sequence[Path]) -> Arrays:
    """By class and number; the validation pictures are the test rows, since the test pictures have no public labels."""
    root, side = "tiny-imagenet-200", dataset.shape[0]
    each = dataset.train_rows // (dataset.classes or 1)
    with zipfile.ZipFile(files[0]) as archive:

        def text(name: str) -> list[str]:
            return _from_zip(archive, Member(f"{root}/{name}", _PICTURE)).decode().split("\n")

        def picture(name: str) -> np.ndarray:
            pixels = _picture(_from_zip(archive, Member(f"{root}/{name}", _PICTURE)))
            if pixels.shape != (side, side, 3):
                raise ValueError(f"{name} in the archive has the shape {pixels.shape}")
            return pixels

        classes = sorted(line.strip() for line in text("wnids.txt") if line.strip())
        names = [f"train/{name}/images/{name}_{k}.JPEG" for name in classes for k in range(each)]
        answers = [line.split("\t")[:2] for line in text("val/val_annotations.txt") if line.strip()]
        answers.sort(key=lambda answer: int(re.sub(r"\D", "", answer[0])))
        return Arrays(
            np.stack([picture(name) for name in names]),
            np.repeat(np.arange(len(classes)), each),
            np.stack([picture(f"val/images/{name}") for name, _ in answers]),
            np.array([classes.index(name) for _, name in answers]),
        )


def _faces(dataset: Dataset, files: Sequence[Path]) -> Arrays:
    """Sorted by file name, which begins with the age; reduced from 200 × 200."""
    found = {}
    for name, age, data in _face_folder(files[0]) if files[0].is_dir() else _face_archive(files[0]):
        found[name] = float(age), _picture(data, reduced=dataset.shape[0])
    if not found:
        raise ValueError(f"{files[0].name} holds no pictures with the names of UTKFace")
    rows = [found[name] for name in sorted(found)]
    return Arrays(np.stack([pixels for _, pixels in rows]), np.array([age for age, _ in rows], np.float32))


def _face_archive(file: Path) -> Iterator[tuple[str, str, bytes]]:
    with tarfile.open(file, "r:gz") as archive:
        for found in archive:
            if match := _FACE.fullmatch(found.name):
                yield match[1], match[2], _from_tar(archive, found, Member(found.name, _PICTURE))


def _face_folder(folder: Path) -> Iterator[tuple[str, str, bytes]]:
    for file in folder.iterdir():
        if match := _FACE.fullmatch(f"UTKFace/{file.name}"):
            with file.open("rb") as content:
                yield match[1], match[2], _bounded(content, Member(file.name, _PICTURE))


def _picture(data: bytes, reduced: int | None = None) -> np.ndarray:
    """Pixels (height, width, 3), reduced to a square with antialiasing where asked."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("pictures need pillow; install ganns[study].") from error
    try:
        with Image.open(io.BytesIO(data), formats=["JPEG"]) as image:
            if max(image.size) > _SIDE:
                raise ValueError(f"a picture has {image.width} × {image.height} pixels, more than {_SIDE} a side")
            colours = image.convert("RGB")
    except (OSError, Image.DecompressionBombError) as error:
        raise ValueError(f"a picture cannot be read ({error})") from error
    if reduced is not None:
        colours = colours.resize((reduced, reduced), Image.Resampling.BILINEAR)
    return np.asarray(colours)


_READERS: dict[str, Callable[[Dataset, Sequence[Path]], Arrays]] = {
    "airfoil": _spaced,
    "yacht": _spaced,
    "utkface": _faces,
    "wine": _wine,
    "year_prediction_msd": _year,
    "cifar100": _cifar,
    "fashion_mnist": _fashion,
    "tiny_imagenet": _tiny,
}
