"""Made archives in the originals' formats, good and evil; what they hold is known before they are packed."""

import gzip
import io
import random
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from ganns.study.catalogue import DATASETS
from ganns.study.originals import Member, Source
from ganns.study.unpacking import contents, unpack

RANDOM = np.random.default_rng(0)


def make_zip(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def make_tar(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return path


def with_source(name, *members, file="original.zip", **changes):
    source = Source(f"https://example.org/{file}", members=tuple(Member(member, 10_000) for member in members))
    return replace(DATASETS[name], sources=(source,), **changes)


def jpeg(pixels):
    image = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    image.fromarray(pixels).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def seen(data):
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(io.BytesIO(data)).convert("RGB"))


def test_columns_apart_by_spaces(tmp_path):
    text = b"-2.3 0.568 4.78 3.99 3.17 0.125  0.11 \n-5.0 0.6 4.34 4.23 2.73 0.450  46.66\n \n"
    file = make_zip(tmp_path / "original.zip", {"yacht.data": text})
    arrays = unpack(with_source("yacht", "yacht.data"), [file])
    np.testing.assert_array_equal(
        arrays.x, np.array([[-2.3, 0.568, 4.78, 3.99, 3.17, 0.125], [-5, 0.6, 4.34, 4.23, 2.73, 0.45]], np.float32)
    )
    np.testing.assert_array_equal(arrays.y, np.array([0.11, 46.66], np.float32))


def test_red_wines_then_white_ones(tmp_path):
    head = ";".join(f'"column {k}"' for k in range(12)) + "\n"
    red, white = (head + ";".join(str(k + start) for k in range(12)) + "\n" for start in (0.5, 20))
    file = make_zip(tmp_path / "original.zip", {"white.csv": white, "red.csv": red})
    arrays = unpack(with_source("wine_regression", "red.csv", "white.csv"), [file])
    np.testing.assert_array_equal(arrays.x, [np.arange(11) + 0.5, np.arange(11) + 20])
    np.testing.assert_array_equal(arrays.y, [11.5, 31])


def test_year_comes_first_and_test_rows_last(tmp_path):
    rows = RANDOM.normal(size=(5, 91)).astype(np.float32)
    rows[:, 0] = [2001, 1999, 1922, 2011, 1980]
    text = "\n".join(",".join(repr(float(value)) for value in row) for row in rows)
    file = make_zip(tmp_path / "original.zip", {"year.txt": text.encode()})
    arrays = unpack(with_source("year_prediction_msd", "year.txt", split=(3, 2)), [file])
    np.testing.assert_array_equal(arrays.y, [2001, 1999, 1922])
    np.testing.assert_array_equal(arrays.test_y, [2011, 1980])
    np.testing.assert_array_equal(np.concatenate([arrays.x, arrays.test_x]), rows[:, 1:])


def test_cifar_has_fine_labels_and_planes_of_colour(tmp_path):
    pictures = RANDOM.integers(0, 256, (3, 32, 32, 3), np.uint8)
    coarse, fine = [1, 2, 3], [40, 50, 99]
    rows = [
        bytes([c, f]) + b"".join(picture[:, :, k].tobytes() for k in range(3))
        for c, f, picture in zip(coarse, fine, pictures, strict=True)
    ]
    file = make_tar(tmp_path / "original.tar.gz", {"c/train.bin": rows[0] + rows[1], "c/test.bin": rows[2]})
    dataset = with_source("cifar100", "c/train.bin", "c/test.bin", file="original.tar.gz")
    arrays = unpack(dataset, [file])
    np.testing.assert_array_equal(arrays.x, pictures[:2])
    np.testing.assert_array_equal(arrays.y, fine[:2])
    np.testing.assert_array_equal(arrays.test_x, pictures[2:])
    np.testing.assert_array_equal(arrays.test_y, fine[2:])
    assert (arrays.x.dtype, arrays.y.dtype) == (np.uint8, np.int64)


def idx(array):
    return b"\0\0\x08" + bytes([array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def test_fashion_is_four_idx_files(tmp_path):
    parts = [RANDOM.integers(0, 256, shape, np.uint8) for shape in ((3, 28, 28), (3,), (2, 28, 28), (2,))]
    sources, files = [], []
    for k, part in enumerate(parts):
        files.append(tmp_path / f"{k}.gz")
        files[-1].write_bytes(gzip.compress(idx(part)))
        sources.append(Source(f"https://example.org/{k}.gz", members=(Member(str(k), 10_000),)))
    arrays = unpack(replace(DATASETS["fashion_mnist"], sources=tuple(sources)), files)
    for array, part in zip(arrays, parts, strict=True):
        np.testing.assert_array_equal(np.squeeze(array), part)
    assert arrays.x.shape == (3, 28, 28, 1)
    files[1].write_bytes(gzip.compress(b"\0\0\x09\x01" + b"\0" * 20))
    with pytest.raises(ValueError, match="IDX"):
        unpack(replace(DATASETS["fashion_mnist"], sources=tuple(sources)), files)


def tiny(pictures):
    """Two classes, two training pictures each, one validation picture each."""
    root = "tiny-imagenet-200"
    files = {
        f"{root}/wnids.txt": b"n02\nn01\n",
        f"{root}/val/val_annotations.txt": b"val_10.JPEG\tn01\t0\t0\t9\t9\nval_9.JPEG\tn02\t0\t0\t9\t9\n",
        f"{root}/val/images/val_9.JPEG": pictures[4],
        f"{root}/val/images/val_10.JPEG": pictures[5],
        f"{root}/test/images/test_0.JPEG": b"never read",
    }
    places = [(name, k) for name in ("n01", "n02") for k in range(2)]
    train = {
        f"{root}/train/{name}/images/{name}_{k}.JPEG": p for (name, k), p in zip(places, pictures[:4], strict=True)
    }
    return files | train


TINY = replace(DATASETS["tiny_imagenet"], split=(4, 2), classes=2)


def test_tiny_imagenet_by_class_and_number_with_grey_pictures(tmp_path):
    pixels = [RANDOM.integers(0, 256, (64, 64, 3), np.uint8) for _ in range(6)]
    pixels[1] = pixels[1][:, :, 0]
    pictures = [jpeg(picture) for picture in pixels]
    arrays = unpack(TINY, [make_zip(tmp_path / "original.zip", tiny(pictures))])
    np.testing.assert_array_equal(arrays.x, np.stack([seen(data) for data in pictures[:4]]))
    np.testing.assert_array_equal(arrays.y, [0, 0, 1, 1])
    np.testing.assert_array_equal(arrays.test_x, np.stack([seen(data) for data in pictures[4:]]))
    np.testing.assert_array_equal(arrays.test_y, [1, 0])
    assert arrays.test_y.dtype == np.int64


@pytest.mark.parametrize("wrong", ["size", "no picture", "truncated"])
def test_tiny_imagenet_with_a_wrong_picture(tmp_path, wrong):
    good = jpeg(RANDOM.integers(0, 256, (64, 64, 3), np.uint8))
    bad = {"size": jpeg(np.zeros((32, 64, 3), np.uint8)), "no picture": b"<html>", "truncated": good[:900]}[wrong]
    file = make_zip(tmp_path / "original.zip", tiny([good] * 5 + [bad]))
    with pytest.raises(ValueError, match=r"has the shape|a picture cannot be read"):
        unpack(TINY, [file])


def test_faces_by_name_from_archive_or_folder(tmp_path):
    pixels = [np.full((200, 200, 3), shade, np.uint8) for shade in (10, 90, 200)]
    pixels[0][:, 100:] = 250
    names = ["39_1_20170116174525125.jpg.chip.jpg", "100_0_1_2017.jpg.chip.jpg", "1_0_2_2017 .jpg.chip.jpg"]
    pictures = dict(zip(names, map(jpeg, pixels), strict=True))
    members = {f"UTKFace/{name}": data for name, data in pictures.items()}
    others = {"UTKFace/readme.txt": b"no", "UTKFace/._39_1.jpg": b"no", "elsewhere/5_1_1_2.jpg": b"no"}
    archive = make_tar(tmp_path / "UTKFace.tar.gz", members | others)
    folder = tmp_path / "UTKFace"
    folder.mkdir()
    for name, data in pictures.items():
        (folder / name).write_bytes(data)

    from_archive = unpack(DATASETS["utkface"], [archive])
    np.testing.assert_array_equal(from_archive.y, [100, 1, 39])
    assert from_archive.x.shape == (3, 64, 64, 3)
    np.testing.assert_allclose(from_archive.x[0].astype(float), 90, atol=2)
    np.testing.assert_allclose(from_archive.x[2, :, 40:].astype(float), 250, atol=3)
    from_folder = unpack(DATASETS["utkface"], [folder])
    np.testing.assert_array_equal(from_folder.x, from_archive.x)
    np.testing.assert_array_equal(from_folder.y, from_archive.y)


def test_folder_without_faces(tmp_path):
    with pytest.raises(ValueError, match="holds no pictures with the names of UTKFace"):
        unpack(DATASETS["utkface"], [tmp_path])


AIRFOIL = b"1\t2\t3\t4\t5\t110\r\n"
EVIL = {"../../evil": b"evil", "/tmp/evil": b"evil", "..\\evil": b"evil", "data.txt/../evil": b"evil"}


@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_paths_in_an_archive_lead_nowhere(tmp_path, make):
    inner = tmp_path / "one" / "two"
    inner.mkdir(parents=True)
    name = "original.zip" if make is make_zip else "original.tar.gz"
    file = make(inner / name, {"data.txt": AIRFOIL, **EVIL})
    arrays = unpack(with_source("airfoil", "data.txt", file=name), [file])
    assert arrays.x.shape == (1, 5)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]
    for evil in ("../data.txt", "./data.txt", "sub/data.txt"):
        file = make(inner / name, {evil: AIRFOIL})
        with pytest.raises(ValueError, match="damaged"):
            unpack(with_source("airfoil", "data.txt", file=name), [file])


def test_links_are_not_followed(tmp_path):
    file = make_tar(tmp_path / "original.tar.gz", {"secret": AIRFOIL, "data.txt": "secret"})
    with pytest.raises(ValueError, match=r"data\.txt in the archive is no file"):
        unpack(with_source("airfoil", "data.txt", file="original.tar.gz"), [file])


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz", ".gz"])
def test_members_have_a_limit_and_a_checksum(tmp_path, suffix):
    file = tmp_path / f"original{suffix}"
    if suffix == ".gz":
        file.write_bytes(gzip.compress(b"\0" * 1_000_000))
    else:
        (make_zip if suffix == ".zip" else make_tar)(file, {"data.txt": b"\0" * 1_000_000})
    source = Source(f"https://example.org/{file.name}", members=(Member("data.txt", 999_999),))
    with pytest.raises(ValueError, match=r"data\.txt in the archive has more than 999999 bytes"):
        contents(source, file)
    source = replace(source, members=(Member("data.txt", 1_000_000, "sha256:00"),))
    with pytest.raises(
        ValueError, match="has the sha256 d29751f2649b32ff572b5e0a9f541ea660a50f94ff0beedfb0b692b924cc8025"
    ):
        contents(source, file)


def test_limit_holds_where_the_archive_lies_about_sizes(tmp_path):
    file = make_zip(tmp_path / "original.zip", {"data.txt": b"\0" * 1_000_000})
    data = file.read_bytes()
    file.write_bytes(data.replace((1_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    with pytest.raises(ValueError, match=r"damaged|more than"):
        unpack(with_source("airfoil", "data.txt"), [file])


@pytest.mark.parametrize("name", ["original.zip", "original.tar.gz", "original.gz"])
def test_damage_is_a_clear_error(tmp_path, name):
    file = tmp_path / name
    if name == "original.gz":
        file.write_bytes(gzip.compress(AIRFOIL))
    else:
        (make_zip if name.endswith("zip") else make_tar)(file, {"data.txt": AIRFOIL})
    whole, dataset = file.read_bytes(), with_source("airfoil", "data.txt", file=name)
    good = unpack(dataset, [file])
    assert good.y == [110]
    source = random.Random(0)
    refused = 0
    for _ in range(150):
        data = bytearray(whole[: source.randrange(len(whole))] if source.random() < 0.3 else whole)
        for _ in range(source.randrange(1, 4) if data else 0):
            data[source.randrange(len(data))] = source.randrange(256)
        file.write_bytes(data)
        try:
            arrays = unpack(dataset, [file])
        except ValueError:
            refused += 1
        else:  # a tar alone has no checksum of its members
            assert name == "original.tar.gz" or np.array_equal(arrays.x, good.x)
    assert refused > 50
