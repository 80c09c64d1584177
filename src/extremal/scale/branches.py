"""Assign branches of the tree of parts to hosts: few branches each, so that answers are few sums, and about equal sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

Branch = tuple[int, int]  # the parts lo, ..., hi - 1, a node of the tree total(lo, hi) = total(lo, mid) + total(mid, hi)
WORTH = 1.1  # ratio by which shares must become more even to be worth a second sum of each host


def shares(sizes: Sequence[int], hosts: int) -> list[tuple[Branch, ...]]:
    """One or two branches for each host, which together cover all parts. ``sizes`` are the costs of the parts.

    Examples
    --------
    >>> shares([1] * 8, 2)
    [((0, 4),), ((4, 8),)]
    >>> shares([1] * 8, 3)
    [((0, 1), (1, 2)), ((2, 3), (6, 8)), ((3, 4), (4, 6))]
    >>> shares([1], 2)
    [((0, 1),)]
    """
    ends = [0, *accumulate(sizes)]
    one, two = (_paired(_cut(ends, many), hosts, ends) for many in (hosts, 2 * hosts))
    return one if _largest(one, ends) <= WORTH * _largest(two, ends) else two


def _size(branch: Branch, ends: Sequence[int]) -> int:
    return ends[branch[1]] - ends[branch[0]]


def _largest(found: list[tuple[Branch, ...]], ends: Sequence[int]) -> int:
    return max(sum(_size(branch, ends) for branch in own) for own in found)


def _cut(ends: Sequence[int], many: int) -> list[Branch]:
    """Cut the largest branch again and again, until there are ``many`` branches or each is one part."""
    found = [(0, len(ends) - 1)]
    while len(found) < many:
        wide = [branch for branch in found if branch[1] - branch[0] > 1]
        if not wide:
            break
        lo, hi = max(wide, key=lambda branch: _size(branch, ends))
        mid, at = (lo + hi) // 2, found.index((lo, hi))
        found[at : at + 1] = (lo, mid), (mid, hi)
    return found


def _paired(found: list[Branch], hosts: int, ends: Sequence[int]) -> list[tuple[Branch, ...]]:
    """Give each host one of the largest branches, and pair the smallest of these with the largest of the rest."""
    order = sorted(found, key=lambda branch: -_size(branch, ends))
    pairs = [(branch,) for branch in order[:hosts]]
    for i, branch in enumerate(order[hosts:]):
        pairs[-1 - i] += (branch,)  # type: ignore[assignment]
    return sorted(tuple(sorted(pair)) for pair in pairs)
