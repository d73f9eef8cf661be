"""Downloading: resumed after an interruption, verified, and never half there under its own name."""

import hashlib
import os
import re
import ssl
import time
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from ganns.study.originals import Source

Listener = Callable[[int, int | None], None]
"""Called with the bytes done and the bytes in all (None: the server does not say) of the file that is on its way."""

PAUSES = (0.0, 1.0, 4.0, 10.0)  # seconds before each attempt; what the one before got is kept
_PATIENCE = 30  # seconds without a byte
_PIECE = 1 << 17
_NETWORK = (URLError, HTTPException, ConnectionError, TimeoutError, ssl.SSLError)


def download(source: Source, folder: Path, listener: Listener | None = None) -> Path:
    """The source's file in a folder, downloaded if it is not there.

    What an interruption leaves is a file that ends in .part, and the next call goes on where that one stops.

    Args:
        source: what to download.
        folder: made if it is not there.
        listener: called after every piece.

    Returns:
        The file's path; its checksum is right, if the source has one.
    """
    whole, part = folder / source.file, folder / f"{source.file}.part"
    if not whole.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _transfer(source.url, part, listener)
        _verify(part, source)
        os.replace(part, whole)
    return whole


def _transfer(url: str, part: Path, listener: Listener | None) -> None:
    """Receive until everything is there, some attempts long."""
    reason: object = None
    for pause in PAUSES:
        time.sleep(pause)
        try:
            if _receive(url, part, listener):
                return
            reason = "the connection broke off"
        except HTTPError as error:
            reason = error
            if error.code < 500:
                break
        except _NETWORK as error:
            reason = error.reason if isinstance(error, URLError) else str(error) or type(error).__name__
    raise ConnectionError(
        f"{url} cannot be downloaded ({reason}); try again later, and what is there already will not be fetched again."
    )


def _receive(url: str, part: Path, listener: Listener | None) -> bool:
    """Append what is missing; whether all is there then."""
    done = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "ganns", "Range": f"bytes={done}-"} if done else {"User-Agent": "ganns"}
    try:
        response: HTTPResponse = urlopen(Request(url, headers=headers), timeout=_PATIENCE)
    except HTTPError as error:
        error.close()
        if error.code != 416:
            raise
        if error.headers.get("Content-Range", "") == f"bytes */{done}":
            return True
        part.unlink()  # longer than the file is: it belongs to another version
        return False
    with response:
        if response.status != 206:
            done = 0
        elif not re.match(rf"bytes {done}-", response.headers.get("Content-Range", "")):
            raise HTTPException("the server sent another part than it was asked for")
        total = None if response.length is None else done + response.length
        with part.open("ab" if done else "wb") as file:
            while True:
                if listener is not None:
                    listener(done, total)
                piece = response.read(_PIECE)
                if not piece:
                    return total is None or done == total
                file.write(piece)
                done += len(piece)


def _verify(part: Path, source: Source) -> None:
    if source.checksum is None:
        return
    algorithm, _, wanted = source.checksum.partition(":")
    with part.open("rb") as file:
        found = hashlib.file_digest(file, algorithm).hexdigest()
    if found != wanted:
        part.unlink()
        raise ValueError(
            f"{source.url} is not the file it should be: its {algorithm} is {found}, not {wanted}. It was deleted; "
            "fetch it again, and if that does not help, the original has changed."
        )
