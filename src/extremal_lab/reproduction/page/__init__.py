"""A report as one self-contained HTML page, with style, script, plotly.js and the numbers inside.

One script draws the page from the report, which is embedded as JSON; ``write_page`` lists the contents of a report.
"""

from __future__ import annotations

import html
import re
from importlib import resources
from pathlib import Path
from typing import Any

from extremal.checks import InputError
from extremal.files import to_json, whole_file
from extremal.support.palette import LATER, METHOD_COLOURS, PALETTE

SCRIPTS = ("data.js", "plots.js", "view.js", "page.js")  # in this order: each may use those before it


def write_page(path: Path, report: dict[str, Any]) -> None:
    """Write the page of a report to ``path``, whole or not at all.

    A report is plain data: title, generated, quick, caution (sentences for a banner), summary, methods, figures (problems, their
    curves, the runs of these), overview, table2, studies, ledger, settings, versions, machine. Empty and missing items have no
    section. Numbers that are not finite become null.

    A problem may have a ``floor``, the least difference to f_min that has a meaning. Default: the gap of f_min. A tuned curve may
    have an ``edge``: true if its factor is the first or the last of the grid of trials. A row of the ledger has the claim (and
    ``short``, for the table), its verdict and one number. Folded below them are where, measured, ``rule`` (when the claim holds),
    ``on`` (the data) and the command, if they are given. A figure may set the first state of its controls by ``view``, with any
    of x (passes, lmos, cpu), y (relative, excess, value, gap), log_x, log_y, steps (own, tuned, both) and band (quartiles, range,
    none).
    """
    with whole_file(path) as temporary:
        temporary.write_text(page(report), encoding="utf-8", newline="\n")


def page(report: dict[str, Any]) -> str:
    """The page of a report, as text."""
    parts = {
        "title": html.escape(str(report.get("title") or "extremal")),
        "style": _resource("page.css"),
        "report": _json(report),
        "script": _script(_drawing()),
        "plotly": _script(_plotly()),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _resource("template.html"))


def _resource(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


def _drawing() -> str:
    """The page's own script: the colours and its files, in one scope apart from plotly's."""
    held = {"OWN": METHOD_COLOURS, "COLOURS": PALETTE, "LATER": LATER}  # light, dark
    palette = "".join(f"const {name} = {to_json(value)};\n" for name, value in held.items()) + "\n"
    return '(() => {\n"use strict";\n\n' + palette + "\n".join(map(_resource, SCRIPTS)) + "})();\n"


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise InputError("the page needs plotly: pip install 'extremal[figures]'") from None
    return get_plotlyjs()


def _json(report: dict[str, Any]) -> str:
    """JSON in which nothing can end the element that holds it."""
    text = to_json(report, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _script(text: str) -> str:
    """A script in which nothing can end the element that holds it; replacements happen inside strings only."""
    return re.sub(r"<(?=/script|!--)", r"\\x3c", text, flags=re.IGNORECASE)
