"""All examples, one after the other: `python examples/run_all.py [--out DIR] [--page docs/examples.md]`.

--page puts the tables of this run into that page, each between the lines `<!-- name -->` and `<!-- end -->`.
"""

import argparse
import contextlib
import importlib
import io
import re
import time
from pathlib import Path

NAMES = (
    "credit_scoring",
    "forecast_combination",
    "synthetic_control",
    "marketing_mix",
    "text_l1",
    "recommender",
    "group_genomics",
    "monotone_effects",
)


def run(name: str, out: Path | None, small: bool) -> str:
    """What an example prints."""
    heard = io.StringIO()
    with contextlib.redirect_stdout(heard):
        importlib.import_module(name).main([*(["--out", str(out)] if out else []), *(["--small"] if small else [])])
    return heard.getvalue()


def inserted(page: str, name: str, printed: str) -> str:
    """The page with the table and the remarks of this run."""
    lines = [line.rstrip() for line in printed.splitlines()[1:]]  # without the title
    table, remarks = [x for x in lines if x.startswith("|")], [x for x in lines if x and not x.startswith("|")]
    text = "\n".join([*table, *(["", *remarks] if remarks else [])])
    new, found = re.subn(rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}\n{text}\n\n{m[2]}", page, flags=re.DOTALL)
    if not found:
        raise SystemExit(f"the page has no place for {name}")
    return new


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="directory of the pictures")
    parser.add_argument("--page", type=Path, help="page whose tables are replaced")
    parser.add_argument("--small", action="store_true", help="small sizes, for tests")
    args = parser.parse_args(argv)
    for name in NAMES:
        start = time.perf_counter()
        printed = run(name, args.out, args.small)
        print(f"{printed.rstrip()}\n{name}: {time.perf_counter() - start:.1f} s\n")
        if args.page:
            args.page.write_text(inserted(args.page.read_text(), name, printed))


if __name__ == "__main__":
    main()
