"""Balls of norms over groups of entries, which may overlap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.vertex import Coordinate, Vertex
from extremal.sets.base import brief_array
from extremal.sets.norms.base import NormBall, ProjectableBall
from extremal.sets.norms.faces import FacedBall
from extremal.sets.norms.latent import latent_norm
from extremal.sets.shared import few, positive_numbers, power, unit
from extremal.sets.simplices.bounds import shrunk


@dataclass(frozen=True, eq=False, repr=False)
class GroupedBall(NormBall):
    """A ball over groups that together contain every entry; an extreme point has the entries of one group."""

    groups: Any
    weights: Any = None

    def __post_init__(self):
        super().__post_init__()
        call = type(self).__name__
        groups, shape = Groups.of(call, self.groups)
        weights = positive_numbers(call, "weights", np.ones(len(groups)) if self.weights is None else self.weights)
        if weights.shape != (len(groups),):
            wanted = f"one for each of the {len(groups)} groups"
            raise InputError(f"`{call}(weights=...)` must be {wanted}, got shape {weights.shape}")
        self._fix(groups=groups, weights=weights)
        if self.shape is None:
            self._fix(shape=shape or (int(groups.indices.max()) + 1,))
        _refuse_missing(call, groups.indices, self._known_shape("groups"))

    def _extreme(self, g: np.ndarray) -> Vertex:
        u = unit(self, g)
        norms = self.groups.norms(u)
        h = int((norms / self.weights).argmax())
        size, S = self.radius / float(self.weights[h]), self.groups[h]
        if norms[h] == 0:
            return Coordinate(int(S[0]), size, g.shape)
        return few(S, u[S] * (-size / float(norms[h])), g.shape)

    def _reach(self) -> float:
        return 1 / float(self.weights.min())


@dataclass(frozen=True, eq=False, repr=False)
class GroupBall(GroupedBall, FacedBall, ProjectableBall):
    """The group ball: a budget on the sum of the groups' Euclidean norms, with solutions that are zero on whole groups.

        {x : sum_g weights_g |x_g|_2 <= radius},
        lmo(g) = -(radius / weights_h) g_h / |g_h|_2 on group h, 0 elsewhere,  h = argmax |g_h|_2 / weights_h

    The groups are a partition of the entries. A call is a few passes over g, and the vertex has the entries of one group. The
    diameter is 2 radius / min weights, because |x|_2 <= sum_g |x_g|_2. Ties go to the first group; for g = 0 the vertex is at
    its first entry. `project` sorts the groups that may stay nonzero. A point on the boundary lies in the simplex of the vertices
    (radius / weights_g) x_g / |x_g|_2 of its nonzero groups: this is its smallest face.

    Parameters
    ----------
    radius, shape, centre
        As for `NormBall`: the radius is positive. Defaults: the shape of the labels, or (number of indices,), and centre 0.
    groups : list of lists of int, or array of int or str
        The flat indices of each group, with every index once; or an array of one label per entry, in the shape of the points.
        Entries with equal labels form a group, and the groups follow the order of the labels.
    weights : array, optional
        One positive weight per group. Default: 1. The square roots of the group sizes are another common choice.

    References
    ----------
    Yuan, Lin (2006), Model selection and estimation in regression with grouped variables, Journal of the Royal Statistical
    Society B 68.

    Examples
    --------
    >>> GroupBall(1.0, groups=[[0, 1], [2]]).lmo(np.array([3.0, -4.0, 4.5])).to_array()
    array([-0.6,  0.8,  0. ])
    >>> GroupBall(1.0, ["age", "home", "home"]).norm(np.array([1.0, 3.0, -4.0]))
    6.0
    """

    def __post_init__(self):
        super().__post_init__()
        times = np.bincount(self.groups.indices)
        if times.max() > 1:
            raise InputError(f"`GroupBall(groups=...)` must not overlap, but index {times.argmax()} does; see LatentGroupBall")

    def _norm(self, a: np.ndarray) -> float:
        return self.groups.norms(a) @ self.weights

    def _nearest(self, y: np.ndarray) -> np.ndarray:
        scale = power(float(np.abs(y).max()))
        flat = y.reshape(-1)
        n = self.groups.norms(flat / scale) * scale
        factor = np.divide(shrunk(n, self.weights, self.radius), n, out=np.zeros_like(n), where=n > 0)
        out = np.empty_like(flat)
        out[self.groups.indices] = flat[self.groups.indices] * factor[self.groups.owner]
        return out.reshape(y.shape)

    def _worst(self, g: np.ndarray, y: np.ndarray, noise: float) -> Vertex:
        scale = power(float(np.abs(y).max()))
        u, groups = y / scale, self.groups
        sizes = self.weights * groups.norms(u)
        along = np.add.reduceat((g.reshape(-1) * u)[groups.indices], groups.starts)  # <g_h, u_h>
        used = sizes > noise * self.radius / scale
        h = int(np.divide(along, sizes, out=np.full(len(groups), -np.inf), where=used).argmax())
        S = groups[h]
        return few(S, u[S] * (self.radius / float(sizes[h])), g.shape)

    def _share(self, y: np.ndarray, v: np.ndarray) -> float:
        h = int(self.groups.norms(v / float(np.abs(v).max())).argmax())
        S = self.groups[h]
        return min(1.0, float(np.linalg.norm(y[S])) / float(np.linalg.norm(v[S])))

    def used(self, x: np.ndarray) -> np.ndarray:
        """The groups on which flat x differs from the centre."""
        return np.flatnonzero(np.logical_or.reduceat((self._from_centre(x) != 0)[self.groups.indices], self.groups.starts))

    def promises(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        """<g, x - s> for the best vertex s of each group, with flat x and g."""
        scale = power(float(np.abs(g).max()))
        return float(self._from_centre(x) @ g) + self.groups.norms(g / scale) * (scale * self.radius) / self.weights

    def on_groups(self, J: np.ndarray) -> tuple[np.ndarray, GroupBall]:
        """The flat indices of the groups J, in rising order, and the ball of points that differ from the centre only there.

        Examples
        --------
        >>> W, part = GroupBall(1.0, groups=[[0, 3], [1], [2]]).on_groups(np.array([0, 2]))
        >>> W, part.groups[0], part.groups[1]
        (array([0, 2, 3]), array([0, 2]), array([1]))
        """
        parts = [self.groups[int(j)] for j in J]
        W = np.sort(np.concatenate(parts))
        centre = None if self.centre is None else self.centre.reshape(-1)[W]
        groups = Groups.joined([np.searchsorted(W, part) for part in parts])
        return W, GroupBall(self.radius, groups, self.weights[J], shape=W.shape, centre=centre)

    def _from_centre(self, x: np.ndarray) -> np.ndarray:
        return x if self.centre is None else x - self.centre.reshape(-1)


@dataclass(frozen=True, eq=False, repr=False)
class LatentGroupBall(GroupedBall):
    """The ball of the latent group norm, for groups that overlap; solutions are zero outside a union of groups.

        conv of all {x : x zero outside group g, weights_g |x|_2 <= radius},
        lmo(g) = -(radius / weights_h) g_h / |g_h|_2 on group h, 0 elsewhere,  h = argmax |g_h|_2 / weights_h

    The groups together contain every entry. A call is one pass over all groups, and the vertex has the entries of one group.
    The diameter is 2 radius / min weights, that of the largest of those balls. Ties go to the first group.

    The norm is the smallest sum_g weights_g |v_g|_2 with x = sum_g v_g, v_g zero outside g. `norm` and `contains` solve this
    problem with about ten steps of an interior-point method. Each step solves a sparse system whose size is the number of
    groups and nonzero entries. The result has a relative accuracy of 1e-10 and errs upward, so a point outside never counts as
    inside.

    Parameters
    ----------
    radius, shape, centre, weights
        As for `GroupBall`, but with (largest index + 1,) instead of the number of indices.
    groups : list of lists of int, or array of int or str
        The flat indices of each group; or one label per entry, as for `GroupBall`.

    References
    ----------
    Jacob, Obozinski, Vert (2009), Group lasso with overlap and graph lasso, ICML.

    Examples
    --------
    >>> C = LatentGroupBall(1.0, groups=[[0, 1], [1, 2]])
    >>> C.lmo(np.array([0.0, 3.0, -4.0])).to_array(), round(C.norm(np.array([0.0, 3.0, -4.0])), 9)
    (array([ 0. , -0.6,  0.8]), 5.0)
    """

    def _norm(self, a: np.ndarray) -> float:
        return latent_norm(a, self.groups.indices, self.groups.owner, self.weights)


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """Groups of flat indices, stored one after the other; ``groups[i]`` holds those of group i, in rising order.

    Examples
    --------
    >>> groups, shape = Groups.of("GroupBall", [[2, 0], [1]])
    >>> groups, groups[0], len(groups), shape
    (<2 groups>, array([0, 2]), 2, None)
    >>> Groups.of("GroupBall", [7, 3, 7])[0][1]  # one label for each entry
    array([0, 2])
    """

    indices: np.ndarray  # the indices of all groups
    starts: np.ndarray  # where each group begins in ``indices``

    @classmethod
    def of(cls, call: str, groups: object) -> tuple[Groups, tuple[int, ...] | None]:
        """Read lists of indices, or labels, which also give the shape of the points."""
        if isinstance(groups, Groups):
            return groups, None
        groups = _numbered(groups)
        if isinstance(groups, (list, tuple)) and not all(isinstance(item, Integral) for item in groups):
            return cls.joined([_group(call, i, item) for i, item in enumerate(groups)]), None
        labels = checks.array(call, "groups", groups)
        if labels.dtype.kind not in "iu" or labels.size == 0 or labels.ndim == 0:
            raise InputError(f"`{call}(groups=...)` must be lists of flat indices, or one whole number or word for each entry")
        order = np.argsort(labels, axis=None, kind="stable")
        cuts = np.flatnonzero(np.diff(labels.reshape(-1)[order])) + 1
        return cls.joined(np.split(order, cuts)), labels.shape

    @classmethod
    def joined(cls, parts: list[np.ndarray]) -> Groups:
        """Groups from the indices of each."""
        indices, starts = np.concatenate(parts), np.cumsum([0, *map(len, parts[:-1])])
        indices.flags.writeable = starts.flags.writeable = False
        return cls(indices, starts)

    @property
    def owner(self) -> np.ndarray:
        """The group of each entry of ``indices``."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts, append=len(self.indices)))

    def norms(self, u: np.ndarray) -> np.ndarray:
        """|u_g|_2 for each group, for flat u whose squares neither overflow nor vanish."""
        return np.sqrt(np.add.reduceat(u[self.indices] ** 2, self.starts))

    def __getitem__(self, i: int) -> np.ndarray:
        at = range(len(self))[i]
        return self.indices[self.starts[at] : self.starts[at + 1] if at + 1 < len(self) else None]

    def __len__(self) -> int:
        return len(self.starts)

    def __repr__(self) -> str:
        return f"<{len(self)} groups>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Groups) and self._bytes() == other._bytes()

    def __hash__(self) -> int:
        return hash(self._bytes())

    def _bytes(self) -> tuple[bytes, bytes]:
        return self.indices.tobytes(), self.starts.tobytes()


def _numbered(groups: object) -> object:
    """Labels of text as whole numbers in the order of the words; other groups unchanged."""
    if isinstance(groups, (list, tuple)) and not all(isinstance(item, str) for item in groups):
        return groups
    labels = np.asarray(groups)
    if labels.dtype.kind not in "OUT" or labels.ndim == 0 or not all(isinstance(item, str) for item in labels.flat):
        return groups
    return np.unique(labels.astype(str), return_inverse=True)[1].reshape(labels.shape) if labels.size else groups


def _group(call: str, i: int, value: object) -> np.ndarray:
    """The indices of one group, in rising order."""
    group = checks.array(call, f"groups[{i}]", value)
    if group.ndim != 1 or group.dtype.kind not in "iu" or group.size == 0:
        raise InputError(f"`{call}(groups=...)` must be lists of one or more flat indices, but group {i} is {brief_array(value)}")
    group = np.sort(group.astype(np.int64))
    if group[0] < 0:
        raise InputError(f"`{call}(groups=...)` must hold indices of 0 or more, but {group[0]} is in group {i}")
    if not np.diff(group).all():
        raise InputError(f"`{call}(groups=...)` must hold an index once in a group, but group {i} is {brief_array(value)}")
    return group


def _refuse_missing(call: str, indices: np.ndarray, shape: tuple[int, ...]) -> None:
    """Refuse indices that do not cover all entries of the shape."""
    entries, top = math.prod(shape), int(indices.max())
    if top >= entries:
        raise InputError(f"`{call}(groups=...)` must hold indices below {entries}, for points of shape {shape}, got {top}")
    times = np.bincount(indices, minlength=entries)
    if not times.all():
        raise InputError(f"`{call}(groups=...)` must hold every index of shape {shape}, but {int(times.argmin())} is in none")
