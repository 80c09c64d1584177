"""Check that required packages are installed, before any work begins."""

from __future__ import annotations

from importlib.util import find_spec

from extremal.checks import InputError

EXTRAS = {  # modules, and the packages that contain them
    "demo": {"sklearn": "scikit-learn", "pandas": "pandas", "matplotlib": "matplotlib"},
    "figures": {"matplotlib": "matplotlib", "plotly": "plotly", "pooch": "pooch", "platformdirs": "platformdirs"},
}


def check_extra(extra: str) -> None:
    """Refuse to begin without the packages of an extra, with one line that names the packages to install."""
    missing = [package for module, package in EXTRAS[extra].items() if find_spec(module) is None]
    if missing:
        raise InputError(f"this needs {', '.join(missing)}: pip install 'extremal[{extra}]'")
