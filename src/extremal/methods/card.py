"""What is said of a method: names, complexities, memory, doubts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """The facts about a method: a row of the paper's Table 1."""

    name: str  # its name on the command line
    summary: str  # one line of text
    source: str  # authors, year, algorithm
    memory: str  # stored numbers beyond a few vectors of length d
    convex: tuple[str, str] | None = None  # SFO and LMO complexity for convex f, O(...); None: no guarantee
    nonconvex: tuple[str, str] | None = None  # the same for the gap of non-convex f
    no_rate: bool = False  # for non-convex f, the method converges without a rate
    full_gradients: bool = False  # whether the method needs them
    big_batches: bool = False  # whether theory needs batches that grow with the accuracy or with n
    needs: tuple[str, ...] = ()  # constants that the method has to know: L, D, sigma
    note: str = ""  # remarks, and doubts about constants; without rates, the known facts instead
    correction: str = ""  # a difference from the paper's table, and its reason
    smallest: Card | None = None  # the row of the same method at b = 1, if the table has one

    @property
    def guarantee(self) -> str:
        """The row as a paragraph."""
        if not (self.convex or self.nonconvex or self.no_rate):
            return f"Guarantee: {self.note}."
        whose = "" if self.correction else ", as in the paper's Table 1"
        said = [f"Guarantee{whose}: {self._rates}", self.note, self.correction]
        if self.smallest is not None:
            said += [f"at b = 1: {self.smallest._rates}", self.smallest.correction]
        return " ".join(f"{_capital(text)}." for text in said if text)

    @property
    def _rates(self) -> str:
        other = "convergence without a rate" if self.no_rate else _calls(self.nonconvex)
        return f"convex f: {_calls(self.convex)}; non-convex f: {other}"


def _calls(cells: tuple[str, str] | None) -> str:
    return "none" if cells is None else f"{cells[0]} component gradients, {cells[1]} LMOs"


def _capital(text: str) -> str:
    """The text with a capital letter, unless it begins with a formula."""
    return text[0].upper() + text[1:] if text[1].isalpha() else text
