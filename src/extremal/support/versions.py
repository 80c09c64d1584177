"""Versions of the library and of its dependencies, for error reports."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

NEEDED = "numpy", "scipy", "numba", "lazy_loader"
OPTIONAL = (
    "scikit-learn", "pandas", "polars", "matplotlib", "typer", "rich", "pyarrow", "dask", "distributed", "highspy", "networkx",
    "threadpoolctl",
)  # fmt: skip


def versions() -> dict[str, str]:
    """The versions of the library, of Python and of packages, by name; packages that are not installed are omitted.

    Examples
    --------
    >>> list(versions())[:4]
    ['extremal', 'Python', 'platform', 'numpy']
    """
    found = {"extremal": known_version(), "Python": platform.python_version(), "platform": platform.platform()}
    return found | {name: known for name in (*NEEDED, *OPTIONAL) if (known := _version(name))}


def known_version() -> str:
    """The version of the library.

    Examples
    --------
    >>> import extremal as ex
    >>> known_version() == ex.__version__
    True
    """
    return sys.modules[__name__.partition(".")[0]].__version__


def show_versions() -> None:
    """Print the versions of the library, of Python and of its dependencies, and the libraries for linear algebra.

    Please include this text in an error report. Packages that are not installed are named at the end. The lines on BLAS and
    OpenMP (kernel and threads) need the package threadpoolctl.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.show_versions()  # doctest: +ELLIPSIS
    extremal       ...
    Python         ...
    platform       ...
    numpy          ...
    """
    found = versions()
    missing = [name for name in (*NEEDED, *OPTIONAL) if name not in found]
    pairs = [*found.items(), *_threads(), *([("not installed", ", ".join(missing))] if missing else [])]
    sys.stdout.write("".join(f"{name:<15}{text}\n" for name, text in pairs))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _threads() -> list[tuple[str, str]]:
    """The libraries of this process that have their own threads."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return []
    import numpy.linalg  # noqa: F401  so that its library is listed

    return [(_kind(library), _words(library)) for library in threadpool_info()]


def _kind(library: dict[str, object]) -> str:
    return {"blas": "BLAS", "openmp": "OpenMP"}.get(str(library["user_api"]), str(library["user_api"]))


def _words(library: dict[str, object]) -> str:
    known = f"{library['internal_api']} {library['version'] or ''}".strip()
    kernel = f", kernel {library['architecture']}" if "architecture" in library else ""
    return f"{known}{kernel}, threads {library['num_threads']}"
