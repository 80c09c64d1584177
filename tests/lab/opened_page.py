"""A page in a browser that has no network."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np

PATIENCE = 300_000  # milliseconds for a page to load: a busy machine may be slow


class Opened:
    """A page in a browser without a network, and what it asked for or complained about."""

    def __init__(self, browser, path: Path, **options) -> None:
        self.context = browser.new_context(**({"viewport": {"width": 1440, "height": 900}} | options))
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.context.route(re.compile(r"^(?!file:|data:|blob:)"), lambda route: route.abort())
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on(
            "console", lambda message: self.errors.append(message.text) if message.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(path.as_uri(), timeout=PATIENCE)
        self.page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")

    def __getattr__(self, name: str):
        return getattr(self.page, name)

    def until(self, condition, what: str = "it") -> None:
        """Wait; the page's policy forbids the eval behind Playwright's own wait."""
        end = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < end, f"{what} did not happen; console: {self.errors}"
            time.sleep(0.05)

    def plot(self, selector: str) -> dict | None:
        """Data and layout of a plot once it is drawn, scrolled into view for that."""
        return self.evaluate(
            """(selector) => {
                const node = document.querySelector(selector + " .plot");
                node.scrollIntoView({ block: "center" });
                const layout = node.layout && { x: node.layout.xaxis, y: node.layout.yaxis };
                return node.data ? { data: node.data, layout } : null;
            }""",
            selector,
        )

    def lines(self, selector: str, role: str = "line") -> dict:
        """(method, steps) -> (x, y) of the traces of a plot."""
        self.until(lambda: self.plot(selector), f"drawing {selector}")
        traces = [t for t in (self.plot(selector) or {})["data"] if t["meta"]["role"] == role]
        numbers = {(t["meta"].get("method"), t["meta"].get("steps")): (t["x"], t["y"]) for t in traces}
        return {key: tuple(np.array(side, dtype=float) for side in pair) for key, pair in numbers.items()}

    def shows(self, selector: str, curves: dict, steps: str) -> bool:
        held = self.lines(selector)
        wanted = {(name, steps): pair for name, pair in curves.items()}
        return held.keys() == wanted.keys() and all(
            a.shape == b.shape and np.allclose(a, b, rtol=1e-12, atol=0, equal_nan=True)
            for key, pair in wanted.items() for a, b in zip(held[key], pair, strict=True)
        )  # fmt: skip

    def choose(self, figure: str, control: str, value) -> None:
        node = self.page.locator(f"#{figure} [data-control={control}]")
        node.set_checked(value) if isinstance(value, bool) else node.select_option(value)

    def close(self) -> None:
        assert self.errors == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))] == []
        self.context.close()
