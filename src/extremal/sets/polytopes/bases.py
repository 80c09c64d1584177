"""Bases of linear programs as plain data: the next program of a run that goes on starts where it would have started."""

from __future__ import annotations

from typing import Any

from extremal.points.vertex import Vertex
from extremal.sets.polytopes.programs import Program
from extremal.support.lazy import imported


def kept_of(C: object, near: Vertex | None) -> dict[str, list[int]] | None:
    """The basis that led a polytope to its answer ``near``, by the numbers of HiGHS; None if there is none."""
    program = vars(C).get("_program")
    basis: Any = program._basis(near) if isinstance(program, Program) else None
    return None if basis is None else {"columns": [*map(int, basis.col_status)], "rows": [*map(int, basis.row_status)]}


def give(C: Any, near: Vertex, kept: dict[str, list[int]]) -> None:
    """Give a polytope the basis of an answer."""
    highspy, program = imported("highspy"), C._program
    basis = highspy.HighsBasis()
    basis.col_status = [highspy.HighsBasisStatus(one) for one in kept["columns"]]
    basis.row_status = [highspy.HighsBasisStatus(one) for one in kept["rows"]]
    if (len(basis.col_status), len(basis.row_status)) != program.A.shape[::-1]:
        raise ValueError("a basis of another program")
    basis.valid, basis.alien = True, False
    program._keep(near, basis)
