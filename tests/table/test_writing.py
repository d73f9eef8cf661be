"""Frames to files: whole, or not at all."""

import io
import os
from pathlib import Path

import polars as pl
import pytest

from ganns.table.writing import check_kind, check_place, write_frames

FRAMES = [
    pl.DataFrame({"row": [1, 2], "notes": ["", 'he said "a, b"\n']}),
    pl.DataFrame({"row": [3], "notes": ["ä\t;"]}),
]
READERS = {
    "csv": pl.read_csv,
    "tsv": lambda path: pl.read_csv(path, separator="\t"),
    "parquet": pl.read_parquet,
}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def ignore(frame: pl.DataFrame) -> None:
    """Nobody listens."""


@pytest.mark.parametrize("suffix", READERS)
def test_pieces_become_one_table(suffix):
    heard: list[int] = []
    path = Path("new", "folder", f"t.{suffix}")
    write_frames(iter(FRAMES), path, lambda frame: heard.append(frame.height))
    assert READERS[suffix](path).equals(pl.concat(FRAMES))
    assert heard == [2, 1]
    assert os.listdir(path.parent) == [path.name]


def test_without_a_file_csv_goes_to_the_standard_output(capsysbinary):
    write_frames(FRAMES, None, ignore)
    assert pl.read_csv(io.BytesIO(capsysbinary.readouterr().out)).equals(pl.concat(FRAMES))


def _failing():
    yield FRAMES[0]
    raise ValueError("a broken row")


@pytest.mark.parametrize("suffix", READERS)
def test_a_failure_leaves_the_old_file_and_no_half_of_the_new(suffix):
    old = Path(f"old.{suffix}")
    old.write_text("old")
    for path in (old, Path("new", "folder", f"t.{suffix}")):
        with pytest.raises(ValueError, match="a broken row"):
            write_frames(_failing(), path, ignore)
    assert os.listdir() == [old.name]
    assert old.read_text() == "old"


def test_a_full_disk_leaves_nothing(monkeypatch):
    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_frames(FRAMES, Path("new", "t.csv"), ignore)
    assert os.listdir() == []


def test_a_failure_leaves_what_others_put_into_the_new_folder():
    def meanwhile():
        Path("new", "other.txt").write_text("kept")
        yield from _failing()

    with pytest.raises(ValueError, match="a broken row"):
        write_frames(meanwhile(), Path("new", "t.csv"), ignore)
    assert os.listdir("new") == ["other.txt"]


def test_places_that_cannot_be_written_are_refused_early():
    Path("file.csv").write_text("")
    Path("folder.csv").mkdir()
    check_place(Path("file.csv"))
    check_place(Path("new", "folder", "t.csv"))
    with pytest.raises(ValueError, match=r"folder\.csv exists and is no ordinary file"):
        check_place(Path("folder.csv"))
    with pytest.raises(ValueError, match=r"file\.csv is a file, so .* cannot be inside it"):
        check_place(Path("file.csv", "deep", "t.csv"))
    assert sorted(os.listdir()) == ["file.csv", "folder.csv"]


def test_a_folder_without_permission_is_refused_early(monkeypatch):
    def refuse(dir):
        raise PermissionError(13, "Permission denied", str(dir))

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(PermissionError):
        check_place(Path("t.csv"))


def test_only_known_kinds_are_written():
    check_kind(Path("t.TSV"))
    for write in (check_kind, lambda path: write_frames(FRAMES, path, ignore)):
        with pytest.raises(ValueError, match=r"t\.xlsx is of no known kind; name a \.csv"):
            write(Path("t.xlsx"))
    assert os.listdir() == []
