"""Records and their files."""

import json
import math

import made_up
import pytest

from ganns.study import records


def test_a_record_comes_back_as_it_was_written(tmp_path):
    record = made_up.record("digits", "gann-sparse", alpha=0.3)
    path = records.write(record, tmp_path)
    again = records.read(path)
    assert again.job == record.job
    assert path.name == record.job.name == again.job.name
    assert again.to_json() == record.to_json()
    assert again.seeds[0].raw == pytest.approx(record.seeds[0].raw, rel=1e-6)


def test_nan_is_null_in_the_file_and_nan_again_when_read(tmp_path):
    text = made_up.record(seeds=1, scores=[{"accuracy": math.nan, "nll": 1.5}]).to_json()
    json.loads(text, parse_constant=pytest.fail)
    (result,) = records.Record.from_json(text).seeds
    assert math.isnan(result.raw["accuracy"])
    assert result.raw["nll"] == 1.5


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"format": 1}', '{"format": 1, "job": {"dataset": "digits"}}'])
def test_other_files_are_refused_by_name(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="record"):
        records.read(path)


def test_half_a_file_is_never_seen(tmp_path, monkeypatch):
    record = made_up.record()
    records.write(record, tmp_path)
    before = (tmp_path / record.job.name).read_text()
    monkeypatch.setattr("os.replace", lambda *paths: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        records.write(record, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [record.job.name]
    assert (tmp_path / record.job.name).read_text() == before


def test_reasons_are_kept_until_the_dataset_is_there(tmp_path):
    records.note_missing(tmp_path, {"yacht": "no yacht", "digits": "no digits"})
    records.note_missing(tmp_path, {"airfoil": "no airfoil"})
    assert records.read_missing(tmp_path) == {"airfoil": "no airfoil", "digits": "no digits", "yacht": "no yacht"}
    records.note_missing(tmp_path, {"yacht": "still no yacht"}, there=["digits", "airfoil"])
    assert records.read_missing(tmp_path) == {"yacht": "still no yacht"}
    records.write(made_up.record("digits"), tmp_path)
    assert len(list(records.read_all(tmp_path))) == 1
