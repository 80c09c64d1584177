"""What `make docs-check` looks at: snippets, links, spelling, readability, and the site in a browser.

Run it after `make docs`. Each check prints what it found; the exit code is 1 if one of them found a fault.
"""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

DOCS = Path(__file__).parent
ROOT = DOCS.parent
SITE = DOCS / "_build" / "html"
GRADE = 11.0  # the highest Flesch-Kincaid grade of the README and the guides
GUIDES = ("start.md", "certificates.md", "solver.md", "migration.md", "guides/*.md")  # beside the README
MADE = {"_build", "auto_examples", "reference"}  # folders that the build writes
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SPELLED = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "examples", "src")
WORDS = "coo,nd,numer,shs,wakin,wirth,zink"  # symbols and names that are no mistakes


def main() -> int:
    """Make every check; return 1 if one found a fault."""
    faults = {check.__name__: list(check()) for check in (snippets, links, spelling, readability, browser)}
    for name, found in faults.items():
        print(f"{name}: {'; '.join(found) if found else 'good'}")
    return int(any(faults.values()))


def pages() -> list[Path]:
    """The sources that people wrote."""
    return [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if not MADE & set(path.parts))]


def snippets() -> Iterator[str]:
    """Run the snippets of the README and of the pages as doctests."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--no-header", "README.md", "docs"], cwd=ROOT, check=False)
    if done.returncode:
        yield f"pytest ended with {done.returncode}"


class Anchors(HTMLParser):
    """The links of a page, and the places in it that links may name."""

    def __init__(self):
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what this tag refers to and how it is called."""
        given = dict(attrs)
        self.places.update(filter(None, (given.get("id"), given.get("name"))))
        self.links.update(filter(None, (given.get("href"), given.get("src"))))


@functools.cache
def anchors(page: Path) -> Anchors:
    """Links and places of a built page."""
    found = Anchors()
    found.feed(page.read_text())
    return found


def links() -> Iterator[str]:
    """Links within the site that lead nowhere."""
    if not (SITE / "index.html").exists():
        yield "there is no site: run make docs"
    for page in sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts):
        for link in sorted(anchors(page).links):
            if not re.match(r"[a-z]+:|//|#$", link) and (fault := _broken(page, link)):
                yield f"{page.relative_to(SITE)}: {fault}"


def _broken(page: Path, link: str) -> str:
    address, place = urldefrag(unquote(link))
    target = (page.parent / address.split("?")[0]).resolve() if address else page
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        return f"{link} is not there"
    missing = place and target.suffix == ".html" and place not in anchors(target).places
    return f"{link} names a place that is not there" if missing else ""


def spelling() -> Iterator[str]:
    """Words that codespell takes for mistakes."""
    skipped = ",".join([*(f"*/{folder}/*" for folder in sorted(MADE)), "*.svg", "*.png"])
    command = [sys.executable, "-m", "codespell_lib", f"--ignore-words-list={WORDS}", f"--skip={skipped}", *SPELLED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    yield from filter(None, done.stdout.splitlines())
    if done.returncode and not done.stdout:
        yield f"codespell did not run: {done.stderr.strip()}"


def prose(text: str) -> str:
    """Sentences of a page: without code, tables, headings, links and formulas."""
    text = re.sub(r"(`{3,}|:{3,}|~{3,}).*?\n\1", "", text, flags=re.S)
    text = re.sub(r"\$\$.*?\$\$|<[^>]+>|!\[[^\]]*\]\([^)]*\)", "", text, flags=re.S)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\{[a-z:]+\}", "", text)
    text = re.sub(r"`[^`]*`", "code", text)
    kept = [line for line in text.splitlines() if not re.match(r"\s*(\||#|    |\(.*\)=)", line)]
    return "\n".join(re.sub(r"^\s*[-*]\s+", "\n", line) for line in kept)


def readability() -> Iterator[str]:
    """Pages for newcomers whose sentences are too hard; the grade of each is printed."""
    import textstat

    guides = [path for pattern in GUIDES for path in sorted(DOCS.glob(pattern))]
    for path in [ROOT / "README.md", *guides]:
        grade = textstat.flesch_kincaid_grade(prose(path.read_text()))
        print(f"  {path.relative_to(ROOT)}: grade {grade:.1f}")
        if grade > GRADE:
            yield f"{path.relative_to(ROOT)} has grade {grade:.1f}, above {GRADE:g}"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A handler of requests that prints none of them."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class Server(http.server.ThreadingHTTPServer):
    """A server that says nothing of requests that the browser gives up."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing."""


@contextmanager
def served() -> Iterator[str]:
    """Serve the site on this machine; give its address."""
    server = Server(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def browser() -> Iterator[str]:
    """What somebody who looks at the site would miss: navigation, search, dark mode, a phone."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if not program:
        print("  no chromium or google-chrome on the PATH: the site was not looked at")
        return
    from playwright.sync_api import sync_playwright

    with served() as address, sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        for look in (_navigates, _searches, _darkens, _fits_a_phone):
            page = running.new_page(viewport={"width": 1200, "height": 900})
            errors: list[str] = []
            page.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
            yield from _seen(look, page, address)
            yield from errors
            page.close()
        running.close()


def _seen(look: Callable, page, address: str) -> Iterator[str]:
    try:
        yield from look(page, address)
    except Exception as error:
        yield f"{look.__name__[1:]}: {str(error).splitlines()[0]}"


def _navigates(page, address: str) -> Iterator[str]:
    """From the first page to every entry of the bar on top, by clicks."""
    page.goto(address)
    entries = page.locator("header .navbar-nav a.nav-link").all_inner_texts()
    for entry in filter(None, {text.strip() for text in entries}):
        page.goto(address)
        page.locator("header .navbar-nav a.nav-link", has_text=entry).first.click()
        page.wait_for_url(lambda url: not url.rstrip("/").endswith(address))
        page.locator("article h1").first.wait_for(timeout=20_000)  # the title; without one this is a fault
    if not entries:
        yield "there is no navigation on the first page"


def _searches(page, address: str) -> Iterator[str]:
    """The search finds a set and leads to its page."""
    page.goto(f"{address}/search.html?q=L1Ball")
    page.locator("#search-results li a").first.wait_for(timeout=20_000)
    found = page.locator("#search-results li a").evaluate_all("links => links.map(link => link.href)")
    if not any("extremal.L1Ball.html" in link for link in found):
        yield "a search for L1Ball does not find its page"


def _darkens(page, address: str) -> Iterator[str]:
    """Dark mode darkens the page and keeps its text light."""
    page.emulate_media(color_scheme="dark")
    page.goto(address)
    shades = page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    behind, text = (sum(int(number) for number in re.findall(r"\d+", shade)[:3]) for shade in shades)
    if behind > 200 or text < 500:
        yield f"dark mode has {shades[1]} on {shades[0]}"


def _fits_a_phone(page, address: str) -> Iterator[str]:
    """No page is wider than a phone, and the menu opens there."""
    page.set_viewport_size({"width": 390, "height": 800})
    for path in sorted(SITE.glob("*.html")) + sorted(SITE.glob("guides/*.html")) + [SITE / "reference/api/extremal.SarahFW.html"]:
        page.goto(f"{address}/{path.relative_to(SITE)}")
        if (width := page.evaluate("document.documentElement.scrollWidth")) > 400:
            yield f"{path.relative_to(SITE)} is {width} pixels wide on a phone of 390"
    page.goto(address)
    page.locator("button.primary-toggle").click()
    page.locator("#pst-primary-sidebar-modal").wait_for(timeout=20_000)  # the menu opens


if __name__ == "__main__":
    sys.exit(main())
