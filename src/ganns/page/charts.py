"""Charts for a page: specifications and their rows as JSON that is safe inside a script element, and the library."""

import functools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ganns.page.blocks import Chart


def altair() -> Any:
    """The altair module; charts are drawn from data named "rows", so that a page holds them only once."""
    try:
        import altair
    except ImportError as error:
        raise ImportError("charts need altair; install ganns[study].") from error
    return altair


def legend(field: str) -> Any:
    """A selection by a click on the legend: what is chosen stays, the rest fades (see `faded`)."""
    return altair().selection_point(fields=[field], bind="legend", name=f"picked_{field}")


def faded(selection: Any, strong: float = 1.0, weak: float = 0.1) -> Any:
    """Opacity of marks inside and outside a selection."""
    alt = altair()
    return alt.when(selection).then(alt.value(strong)).otherwise(alt.value(weak))


def choice(name: str, label: str, options: Sequence[str]) -> Any:
    """A list to choose from above the chart; filter with `alt.datum.field == choice`."""
    alt = altair()
    return alt.param(name=name, value=options[0], bind=alt.binding_select(options=list(options), name=label))


def specification(spec: Any) -> dict[str, Any]:
    """A Vega-Lite specification from an altair chart or a dict, without altair's own theme."""
    if isinstance(spec, Mapping):
        return dict(spec)
    found = spec.to_dict()
    found.pop("$schema", None)
    found.pop("config", None)
    return found


def payload(chart: Chart) -> str:
    """The chart's specification and rows as JSON; "<" is escaped, so no text can end the script element around it."""
    columns = list(chart.data_rows[0]) if chart.data_rows else []
    rows = [[_plain(row.get(column)) for column in columns] for row in chart.data_rows]
    found = {"spec": specification(chart.spec), "columns": columns, "rows": rows}
    return script_safe(json.dumps(found, separators=(",", ":"), ensure_ascii=False, allow_nan=False))


def script_safe(text: str) -> str:
    """JSON that may stand inside a script element."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@functools.cache
def library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; it goes into a page once, however many charts there are."""
    try:
        import vl_convert
    except ImportError as error:
        raise ImportError("charts need vl-convert-python; install ganns[study].") from error
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")


def _plain(value: Any) -> Any:
    """A value for JSON: numbers to five digits, None for NaN and inf."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value
