"""The command `ganns`: `main` runs it and turns errors into sentences and exit codes."""

import errno
import importlib.util
import os
import sys
from collections.abc import Sequence

_DEBUG = "GANNS_DEBUG"
_EXTRAS = {"sklearn": "estimators", "onnx": "export", "onnxscript": "export", "onnxruntime": "export", "ray": "cluster"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    0: done. 1: some of the work failed. 2: wrong input, said in one sentence on stderr. 130: interrupted. With
    GANNS_DEBUG=1 in the environment errors show their traceback instead.

    Args:
        arguments: without the program's name; None: those that the process was started with.
    """
    if importlib.util.find_spec("typer") is None:
        print("ganns: the command line needs typer; pip install 'ganns[study]'.", file=sys.stderr)
        return 2
    from ganns.cli import study, tables  # noqa: F401  importing them registers their commands
    from ganns.cli.app import app

    try:
        app(list(sys.argv[1:] if arguments is None else arguments), prog_name="ganns")
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if code == 130:
            _say("interrupted, and nothing is left half written; the same command again goes on where it can.")
        return code
    except Exception as error:
        sentence = explain(error)
        if sentence is None or os.environ.get(_DEBUG, "0") not in ("", "0"):
            raise
        _say(sentence)
        return 2
    return 0


def explain(error: BaseException) -> str | None:
    """An expected error in one sentence; None if it is a mistake of this library, which deserves its traceback."""
    if isinstance(error, OSError):
        return _about_file(error)
    if isinstance(error, ModuleNotFoundError) and error.name and "ganns[" not in str(error):
        package = error.name.partition(".")[0]
        return f"{package} is not installed; pip install 'ganns[{_EXTRAS.get(package, 'study')}]'."
    ours = isinstance(error, LookupError) and type(error).__module__.startswith("ganns.")
    if ours or isinstance(error, ValueError) or (isinstance(error, ImportError) and "ganns[" in str(error)):
        return " ".join(str(error).split()) or type(error).__name__
    return "there is not enough memory for this; give fewer rows or columns." if type(error) is MemoryError else None


def _about_file(error: OSError) -> str:
    """An error of the operating system; those raised by us with a sentence of their own have no number."""
    if error.errno is None:
        return " ".join(str(error).split())
    where = f" {error.filename2 or error.filename!r}" if error.filename else ""
    match error.errno:
        case errno.ENOENT:
            return f"there is no file or folder{where}."
        case errno.ENOSPC | errno.EDQUOT:
            return f"the disk is full: nothing was written{' to' + where if where else ''}; make room and try again."
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f"there is no permission for{where or ' that file'}; choose another place or change its permissions."
        case errno.EISDIR:
            return f"{where.strip() or 'that path'} is a folder, where a file is needed."
        case _:
            return f"the system refuses{where}: {error.strerror}."


def _say(sentence: str) -> None:
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True).print(Text.assemble(("ganns: ", "bold red"), sentence), soft_wrap=True)
