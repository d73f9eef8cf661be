"""Downloads from a server on this machine that breaks off, lies, is silent, and knows nothing of ranges."""

import hashlib
import io
import re
import socket
import threading
import zipfile
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from ganns.study import datasets, fetching
from ganns.study.catalogue import DATASETS
from ganns.study.fetching import download
from ganns.study.originals import Member, Source

CONTENT = bytes(range(256)) * 40
MD5 = f"md5:{hashlib.md5(CONTENT).hexdigest()}"


@dataclass
class Site:
    """What the server does, and what it was asked."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    length: bool = True
    cut: int | None = None
    fail: list[int] = field(default_factory=list)
    asked: list[str | None] = field(default_factory=list)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        wanted = handler.headers.get("Range")
        self.asked.append(wanted)
        if self.fail:
            return handler.send_error(self.fail.pop(0))
        content = self.files.get(handler.path.lstrip("/"))
        if content is None:
            return handler.send_error(404)
        start = int(re.findall(r"\d+", wanted)[0]) if wanted and self.ranges else 0
        if start and start >= len(content):
            handler.send_response(416)
            handler.send_header("Content-Range", f"bytes */{len(content)}")
            return handler.end_headers()
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if self.length:
            handler.send_header("Content-Length", str(len(content) - start))
        handler.end_headers()
        handler.wfile.write(content[start:] if self.cut is None else content[start : start + self.cut])
        return None


@pytest.fixture
def site(monkeypatch):
    site = Site(files={"data.bin": CONTENT})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            site.answer(self)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("no_proxy", "*")
        monkeypatch.setattr(fetching, "PAUSES", (0.0,) * 4)
        monkeypatch.setattr(fetching, "_PIECE", 1000)
        yield site
        server.shutdown()
        thread.join()


@pytest.fixture
def source(site):
    return Source(f"{site.url}/data.bin", MD5)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_file_arrives_whole_and_tells_how_far_it_is(source, tmp_path):
    heard = []
    path = download(source, tmp_path / "new", lambda done, total: heard.append((done, total)))
    assert path == tmp_path / "new" / "data.bin"
    assert path.read_bytes() == CONTENT
    assert heard == [(min(k * 1000, len(CONTENT)), len(CONTENT)) for k in range(12)]
    assert names(tmp_path / "new") == ["data.bin"]


def test_file_that_is_there_is_not_fetched_again(source, site, tmp_path):
    download(source, tmp_path)
    download(source, tmp_path)
    assert len(site.asked) == 1


def test_cut_connection_goes_on_where_it_broke(source, site, tmp_path):
    site.cut = 3000
    heard = []
    assert download(source, tmp_path, lambda *how_far: heard.append(how_far)).read_bytes() == CONTENT
    assert site.asked == [None, "bytes=3000-", "bytes=6000-", "bytes=9000-"]
    assert {total for _, total in heard} == {len(CONTENT)}


def test_what_came_stays_when_attempts_run_out(source, site, tmp_path):
    site.cut = 1500
    with pytest.raises(
        ConnectionError, match=r"data\.bin cannot be downloaded \(the connection broke off\); try again"
    ):
        download(source, tmp_path)
    assert names(tmp_path) == ["data.bin.part"]
    assert (tmp_path / "data.bin.part").read_bytes() == CONTENT[:6000]
    site.cut = None
    assert download(source, tmp_path).read_bytes() == CONTENT
    assert site.asked[-1] == "bytes=6000-"


def test_server_errors_are_tried_again_and_refusals_are_not(source, site, tmp_path):
    site.fail = [503, 500]
    assert download(source, tmp_path).read_bytes() == CONTENT
    site.asked.clear()
    with pytest.raises(ConnectionError, match="404"):
        download(Source(f"{site.url}/other.bin"), tmp_path)
    assert len(site.asked) == 1


def test_nobody_answers(site, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed_soon:
        port = closed_soon.getsockname()[1]
    with pytest.raises(ConnectionError, match="refused"):
        download(Source(f"http://127.0.0.1:{port}/data.bin"), tmp_path)
    assert names(tmp_path) == []


def test_server_without_ranges_begins_anew(source, site, tmp_path):
    site.ranges = False
    (tmp_path / "data.bin.part").write_bytes(b"x" * 4000)
    heard = []
    assert download(source, tmp_path, lambda *how_far: heard.append(how_far)).read_bytes() == CONTENT
    assert site.asked == ["bytes=4000-"]
    assert heard[0] == (0, len(CONTENT))


def test_server_that_does_not_say_how_much(source, site, tmp_path):
    site.length = False
    heard = []
    assert download(source, tmp_path, lambda *how_far: heard.append(how_far)).read_bytes() == CONTENT
    assert heard[-1] == (len(CONTENT), None)


@pytest.mark.parametrize("there", [CONTENT, CONTENT + b"too much"], ids=["complete", "too long"])
def test_part_that_needs_nothing_more(source, site, tmp_path, there):
    (tmp_path / "data.bin.part").write_bytes(there)
    assert download(source, tmp_path).read_bytes() == CONTENT
    assert names(tmp_path) == ["data.bin"]


def test_wrong_checksum_leaves_nothing(site, tmp_path):
    found = hashlib.sha256(CONTENT).hexdigest()
    with pytest.raises(ValueError, match=f"its sha256 is {found}, not 1234. It was deleted"):
        download(Source(f"{site.url}/data.bin", "sha256:1234"), tmp_path)
    assert names(tmp_path) == []


def test_part_of_another_version_is_found_out_and_then_forgotten(source, site, tmp_path):
    (tmp_path / "data.bin.part").write_bytes(b"x" * 4000)
    with pytest.raises(ValueError, match="not the file it should be"):
        download(source, tmp_path)
    assert download(source, tmp_path).read_bytes() == CONTENT


def test_interruption_leaves_a_part_that_is_gone_on_with(source, site, tmp_path):
    def interrupt(done, total):
        if done >= 5000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(source, tmp_path, interrupt)
    assert names(tmp_path) == ["data.bin.part"]
    assert download(source, tmp_path).read_bytes() == CONTENT
    assert site.asked == [None, "bytes=5000-"]


ROWS = np.array([[1.5, 2, 3, 4, 5, 110], [6, 7, 8, 9, 10.25, 120.5]], np.float32)
TEXT = "".join("\t".join(f"{value:g}" for value in row) + "\r\n" for row in ROWS).encode()


def zipped(**files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return buffer.getvalue()


@pytest.fixture
def airfoil(site, tmp_path, monkeypatch):
    """The folder, and an Airfoil with two rows that the server has."""
    monkeypatch.setenv("GANNS_DATA", str(tmp_path))
    site.files["airfoil.zip"] = zipped(airfoil__dat=TEXT, other=b"." * 5000)
    member = Member("airfoil.dat", len(TEXT), f"md5:{hashlib.md5(TEXT).hexdigest()}")
    sources = (Source(f"{site.url}/airfoil.zip", members=(member,)),)
    monkeypatch.setitem(DATASETS, "airfoil", replace(DATASETS["airfoil"], rows=2, sources=sources))
    return tmp_path


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_fetched_dataset_loads(airfoil, site):
    heard = []
    status = datasets.fetch("airfoil", lambda *how_far: heard.append(how_far))
    assert (status.present, status.train, status.test, status.path) == (True, 2, 0, airfoil / "airfoil.npz")
    assert heard[-1][0] == heard[-1][1] == len(site.files["airfoil.zip"])
    assert everything(airfoil) == ["airfoil.npz"]
    arrays = datasets.load("airfoil")
    np.testing.assert_array_equal(arrays.x, ROWS[:, :-1])
    np.testing.assert_array_equal(arrays.y, ROWS[:, -1])
    datasets.fetch("airfoil")
    assert len(site.asked) == 1


def test_fetch_goes_on_after_an_interruption(airfoil, site):
    def interrupt(done, total):
        if done >= 2000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        datasets.fetch("airfoil", interrupt)
    assert everything(airfoil) == ["downloads/airfoil.zip.part"]
    assert not datasets.status("airfoil").present
    datasets.fetch("airfoil")
    assert site.asked == [None, "bytes=2000-"]
    assert everything(airfoil) == ["airfoil.npz"]


def test_changed_member_leaves_nothing(airfoil, site):
    site.files["airfoil.zip"] = zipped(airfoil__dat=TEXT.replace(b"110", b"111"))
    with pytest.raises(
        ValueError, match=r"the original of airfoil is not what it should be: airfoil\.dat .* has the md5"
    ):
        datasets.fetch("airfoil")
    assert everything(airfoil) == []


def test_values_that_cannot_be_leave_nothing(airfoil, site, monkeypatch):
    text = TEXT.replace(b"110", b"999")
    site.files["airfoil.zip"] = zipped(airfoil__dat=text)
    [source] = DATASETS["airfoil"].sources
    sources = (replace(source, members=(Member("airfoil.dat", len(text)),)),)
    monkeypatch.setitem(DATASETS, "airfoil", replace(DATASETS["airfoil"], sources=sources))
    with pytest.raises(ValueError, match=r"y goes from 120\.5 to 999\.0"):
        datasets.fetch("airfoil")
    assert everything(airfoil) == []


def test_a_part_of_the_rows_is_completed(airfoil, site, monkeypatch):
    monkeypatch.setitem(DATASETS, "airfoil", replace(DATASETS["airfoil"], partial=True))
    np.savez(airfoil / "airfoil.npz", x=ROWS[:1, :-1], y=ROWS[:1, -1])
    assert datasets.status("airfoil").train == 1
    assert datasets.fetch("airfoil").train == 2


def test_two_at_once_do_not_hurt_each_other(airfoil, site):
    def another(done, total):
        with pytest.raises(BlockingIOError, match="Airfoil is being fetched by another process"):
            datasets.fetch("airfoil")

    assert datasets.fetch("airfoil", another).present
    assert everything(airfoil) == ["airfoil.npz"]


def test_damaged_file_is_replaced_only_by_a_whole_one(airfoil, site):
    (airfoil / "airfoil.npz").write_bytes(b"damaged")
    site.fail = [503] * 4
    with pytest.raises(ConnectionError):
        datasets.fetch("airfoil")
    assert (airfoil / "airfoil.npz").read_bytes() == b"damaged"
    assert datasets.fetch("airfoil").present
