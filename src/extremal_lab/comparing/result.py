"""The result of a comparison: its table, its page, what accuracies cost, and a file that other machines can merge."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from extremal.checks import InputError
from extremal.files import to_json, whole_file
from extremal_lab.comparing import metrics
from extremal_lab.comparing.merging import merged
from extremal_lab.reproduction.plan import Curve, Panel
from extremal_lab.reproduction.report import machine, versions
from extremal_lab.reproduction.sources import Source
from extremal_lab.reproduction.spec import Figure, Problem, Trial

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "extremal comparison 1"
TITLE = "A comparison of methods"


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`: plain numbers, without the objects that made them.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> from extremal_lab import compare
    >>> A = np.random.default_rng(0).standard_normal((100, 5))
    >>> f = ex.LinearModel(ex.Squared(), A, A[:, 0])
    >>> found = compare({"mine": (f, ex.L1Ball(0.5))}, ["frank-wolfe", "pairwise-fw"], passes=20, seeds=1)
    >>> [row["method"] for row in found.rows()]
    ['frank-wolfe', 'pairwise-fw']
    >>> found.time_to(1e-6, by="passes")[1]["reached"]
    1
    >>> Comparison.merge(found, found)
    Comparison(methods=2, problems=1, budget='20 full gradients')
    """

    figure: Figure
    panels: tuple[Panel, ...]
    machines: tuple[dict[str, Any], ...]  # the processor and the versions of each machine
    names: tuple[str, ...] = ()  # the metrics of tables; empty: all that were measured

    @classmethod
    def of(cls, figure: Figure, panels: Sequence[Panel], names: tuple[str, ...] = ()) -> Comparison:
        """The result of runs on this machine; files are known by their names, not by their folders."""
        return cls(*_without_folders(figure, panels), ({"machine": machine(), "versions": versions()},), names)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each problem, method and choice of steps, with medians over the seeds."""
        return metrics.table(self.panels, self.names or metrics.metrics_of(self.panels))

    def table(self) -> pd.DataFrame | list[dict[str, Any]]:
        """The same as a pandas DataFrame, if pandas is installed; otherwise the rows."""
        try:
            import pandas as pd
        except ImportError:
            return self.rows()
        return pd.DataFrame(self.rows())

    def time_to(self, accuracy: float, by: str = "cpu", of: str = "excess") -> list[dict[str, Any]]:
        """What an accuracy costs each method.

        A run reaches the accuracy at its first recorded point with f - f_min <= accuracy, or with a gap of at most that
        (``of="gap"``, for f that is not convex). ``by`` is "passes", "lmos" or "cpu". The median over the seeds is infinite if
        half of them do not reach it; ``reached`` counts those that do.
        """
        return metrics.time_to(self.panels, accuracy, by, of)

    def page(self, path: str | Path, title: str = TITLE) -> Path:
        """Write a page with the curves, all metrics and the settings; it needs plotly, and no network to be read."""
        from extremal_lab.reproduction.page import write_page
        from extremal_lab.reproduction.report import report

        said = report(title, [(self.figure, self.panels)], False, studies=[self.study()])
        said["caution"] = [*said["caution"], *self._cautions()]
        said["machine"] = self.machines[0]["machine"] if len(self.machines) == 1 else self._machines()
        write_page(Path(path), said)
        return Path(path)

    def study(self) -> dict[str, Any]:
        """The metrics as a section of a page."""
        return metrics.study(self.figure, self.panels)

    def save(self, path: str | Path) -> Path:
        """Write the numbers as JSON, without objects and without pickle."""
        with whole_file(Path(path)) as temporary:
            temporary.write_text(to_json(self._plain(), indent=1), encoding="utf-8")
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> Comparison:
        """Read what `save` wrote."""
        try:
            held = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: this is not a saved comparison ({error})") from None
        if not isinstance(held, dict) or held.get("format") != FORMAT:
            raise InputError(f"{path}: this is not a saved comparison of this version; expected the format {FORMAT!r}")
        return cls(_figure(held["figure"]), tuple(map(_panel, held["panels"])), tuple(held["machines"]), tuple(held["names"]))

    @classmethod
    def merge(cls, *parts: Comparison | str | Path) -> Comparison:
        """One comparison from several, or from their files: of other methods, other seeds, or other problems.

        Problems of one name must be the same problem: n, the size of x, f at three points and a gap are compared, up to rounding.
        Budgets must be equal, and methods tuned alike. Of runs that are there twice, the first is taken.
        """
        held = [part if isinstance(part, Comparison) else cls.load(part) for part in parts]
        if not held:
            raise InputError("`Comparison.merge(...)` must have at least one comparison")
        figure, panels = merged([(part.figure, part.panels) for part in held])
        machines = {to_json(m): m for part in held for m in part.machines}
        return cls(figure, tuple(panels), tuple(machines.values()), held[0].names)

    def _plain(self) -> dict[str, Any]:
        lists = {"names": list(self.names), "machines": list(self.machines), "panels": list(map(_plain_panel, self.panels))}
        return {"format": FORMAT, "figure": asdict(self.figure)} | lists

    def _cautions(self) -> list[str]:
        some = len(self.machines)
        return [f"The runs come from {some} machines: their CPU seconds cannot be compared."] if some > 1 else []

    def _machines(self) -> dict[str, str]:
        return {f"machine {i}": ", ".join(map(str, m["machine"].values())) for i, m in enumerate(self.machines, 1)}

    def __repr__(self) -> str:
        methods = dict.fromkeys(curve.method for panel in self.panels for curve in panel.curves)
        return f"Comparison(methods={len(methods)}, problems={len(self.panels)}, budget={self.figure.budget!r})"


def _without_folders(figure: Figure, panels: Sequence[Panel]) -> tuple[Figure, tuple[Panel, ...]]:
    """The same with files known by their names."""
    found = tuple(
        replace(panel, problem=_short(panel.problem), source=replace(panel.source, data=Path(panel.source.data).name))
        for panel in panels
    )
    return replace(figure, problems=tuple(map(_short, figure.problems))), found


def _short(problem: Problem) -> Problem:
    return replace(problem, data=Path(problem.data).name)


# JSON


def _plain_panel(panel: Panel) -> dict[str, Any]:
    held = {name: getattr(panel, name) for name in ("convex", "minimum", "gap", "how", "fingerprint")}
    parts = {"problem": asdict(panel.problem), "source": asdict(panel.source)}
    return parts | held | {"curves": [_plain_curve(curve) for curve in panel.curves]}


def _plain_curve(curve: Curve) -> dict[str, Any]:
    runs = [{name: column.tolist() for name, column in run.items()} for run in curve.runs]
    return {name: value for name, value in vars(curve).items() if name != "runs"} | {"runs": runs}


def _figure(held: dict[str, Any]) -> Figure:
    parts: dict[str, Any] = {name: tuple(held[name]) for name in ("methods", "factors", "added")}
    parts["problems"] = tuple(Problem(**problem) for problem in held["problems"])
    parts["tuning"] = tuple((method, tuple(Trial(**trial) for trial in trials)) for method, trials in held["tuning"])
    return Figure(**(held | parts))


def _panel(held: dict[str, Any]) -> Panel:
    parts: dict[str, Any] = {"problem": Problem(**held["problem"]), "source": Source(**held["source"])}
    parts |= {"fingerprint": tuple(held["fingerprint"]), "curves": tuple(map(_curve, held["curves"]))}
    return Panel(**(held | parts))


def _curve(held: dict[str, Any]) -> Curve:
    runs = tuple({name: _column(values) for name, values in run.items()} for run in held["runs"])
    return Curve(**(held | {"runs": runs, "seeds": tuple(held["seeds"])}))


def _column(values: Any) -> np.ndarray:
    """An array; null is NaN."""
    return np.array(values, dtype=np.float64) if isinstance(values, list) else np.asarray(values)
