"""Write the lower part of docs/results.md from the records in docs/records: claims and tables. People write the upper.

python docs/results.py            rewrite the page
python docs/results.py FOLDER     take over the records of a folder first, without their long histories
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ganns.study import records, tables
from ganns.study.commands import commands
from ganns.study.formats import markdown
from ganns.study.records import Record
from ganns.study.report import claimed

PAGE = Path(__file__).with_name("results.md")
RECORDS = Path(__file__).with_name("records")
_LONG = 200  # epochs
_MARK = "<!-- What follows is written by docs/results.py. -->"


def take_over(folder: Path) -> None:
    """Replace the records by those of a folder."""
    found = [replace(record, seeds=tuple(map(_shortened, record.seeds))) for record in records.read_all(folder)]
    for old in RECORDS.glob("*.json"):
        old.unlink()
    for record in found:
        records.write(record, RECORDS)


def _shortened(result: records.SeedResult) -> records.SeedResult:
    """With what the claims are counted from: the validation metric of not too many epochs."""
    kept = {name: values for name, values in result.history.items() if name == "validation" and len(values) <= _LONG}
    return replace(result, history=kept)


def page() -> str:
    """The text of the page."""
    found, missing = list(records.read_all(RECORDS)), records.read_missing(RECORDS)
    introduction, _, _ = PAGE.read_text(encoding="utf-8").partition(_MARK)
    parts = [introduction.strip(), _MARK, _made(found)]
    parts += ["## The paper's claims, counted again", *(markdown(table).strip() for table in claimed(found))]
    parts += ["## Tables", *(markdown(table).strip() for table in tables.all_tables(found, missing))]
    return "\n\n".join(parts) + "\n"


def _made(found: Sequence[Record]) -> str:
    def all_of(key: str) -> str:
        return ", ".join(sorted({record.environment[key] for record in found}))

    dates = sorted(record.environment["date"][:10] for record in found)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    lines = [
        f"Made on {when} on {all_of('device')}, PyTorch {all_of('torch')}, float32: {len(found)} records, which lie in "
        "`docs/records` and are what this page is written from (`docs/results.py`). To make them again:",
        "```sh",
        *commands(found),
        "```",
    ]
    return "\n".join([lines[0], "", *lines[1:]])


if __name__ == "__main__":
    if len(sys.argv) > 2 or sys.argv[1:2] == ["--help"]:
        sys.exit(__doc__)
    if sys.argv[1:]:
        take_over(Path(sys.argv[1]))
    PAGE.write_text(page(), encoding="utf-8")
