"""The kinds of objects that a checkpoint may hold: a table of names, and nothing else is ever imported for a file."""

from __future__ import annotations

import re
from importlib import import_module

from extremal.checks import InputError

STATES = {  # module: its classes. A part of a run that is missing here cannot be saved, and the run is refused before it begins
    "laws": "PowerLaw Geometric Telescoping Doubling EpochLength EpochTolerance",
    "points.active": "ActiveSet",
    "points.composed": "Combination Chord Blocks",
    "points.entries_gradient": "Positions Observed MatrixSum",
    "points.factored": "FactoredMatrix",
    "points.low_rank": "RankOne LowRank FactorBuffer",
    "points.manifolds": "Euclidean SPD",
    "points.stacks": "FewVertices _Buffer RowStack Factors Mixed",
    "points.vertex": "Coordinate SparseVertex DenseVertex",
    "quadratic.polyhedral": "Inequalities Holding",
    "quadratic.solver": "Hull",
    "data.kept": "Uniform Held Stored Derived",
    "objectives.base": "Sampler Parabola",
    "objectives.column_blocks": "HessianProducts Less ColumnBlock",
    "objectives.expansion": "Aim Expansion _Known",
    "objectives.on_atoms": "OnPoints OnMargins",
    "objectives.on_columns_multi": "OutputSlice OutputProducts",
    "objectives.passes": "PassSampler",
    "objectives.row_bends": "RowBends",
    "objectives.secants": "Secants _All",
    "objectives.slabs": "Slab SlabModel _OnSlabs",
    "losses.multi": "CurvatureRows",
    "gradients.base": "Phase PlainEstimate Looked Shift",
    "gradients.batches": "MiniBatch PoolEstimate Pool",
    "gradients.compressed": "WorkerState CompressedEstimate EF21 Marina",
    "gradients.compressors": "TopK RandomK Natural NoCompression",
    "gradients.curved": "CurvedTable CurvedEstimate",
    "gradients.expanded": "Expanded",
    "gradients.full": "Full GrowingEstimate Growing",
    "gradients.gossip": "Heard Gossip",
    "gradients.messages": "Message",
    "gradients.momentum": "Momentum Storm",
    "gradients.partial": "PartialEstimate Partial",
    "gradients.penalty": "PenalisedEstimate Penalised",
    "gradients.reduced": "Sarah EpochEstimate Svrg Spider",
    "gradients.reshuffled": "Reshuffled",
    "gradients.shuffled": "ShuffledEstimate ShuffledSarah",
    "gradients.streamed": "SlabEstimate Streamed",
    "gradients.substitute": "SubstituteEstimate Substitute",
    "gradients.table": "DerivativeTable TableEstimate Sag Saga SagaSarah",
    "gradients.tracked": "TrackedTable TrackedEstimate TrackedSag",
    "gradients.tracked_saga": "_Wishes TrackedSagaEstimate TrackedSaga",
    "gradients.tracking": "AgentState TrackingEstimate Tracking",
    "gradients.zeroth": "FiniteDifferences ZerothOrder",
    "steps.adaptive": "ShortStep LineSearch",
    "steps.base": "Scaled",
    "steps.curved": "SelfConcordant BatchCurvature",
    "steps.epochs": "EpochOpenLoop EpochHarmonic",
    "steps.learning": "Secant Backtracking",
    "steps.schedules": "OpenLoop LogOpenLoop Decay FullStep TwoPhase Anytime InverseSqrt SmallBatch LuFreundStep",
    "moves.atoms": "Patience AtomsPoint Away Pairwise BlendedPairwise",
    "moves.base": "Point",
    "moves.blocks": "BlockPoint Blockwise",
    "moves.boosted": "Boosted",
    "moves.consensus": "AgentsPoint Consensus",
    "moves.corrective": "CorrectivePoint FullyCorrective",
    "moves.in_face": "InFacePairwise InFaceBlended",
    "moves.low_rank.factors": "Decomposition",
    "moves.low_rank.move": "LowRankPoint Frame FactorCorrective",
    "moves.newton.atoms": "NewtonPoint AtomNewton",
    "moves.newton.box": "BoxNewton",
    "moves.newton.model": "Root Memory",
    "moves.newton.projected": "GroupPart GroupPoint ProjectedNewton",
    "moves.newton.rows": "RowPoint RowNewton",
    "moves.newton.spikes": "SpikeNewton",
    "moves.returning": "_Landing Returning",
    "moves.sliding.plain": "ProxPoint Sliding AcceleratedSliding DoubleSliding",
    "moves.sliding.prox": "Probe",
    "moves.sliding.warm": "WarmPoint AnchoredPoint WarmSliding AnchoredSliding",
    "moves.vertex": "VertexMove GeodesicMove",
    "methods.method": "Budget Method",
    "run.bursts.faces": "_Tracked _Saga",
    "run.bursts.run": "Burst",
    "run.counted_parts": "CountedRestriction CountedSlice _CountedProducts",
    "run.counting": "CountedObjective CountedSet",
    "run.headway": "Headway",
    "run.loop": "State",
    "run.result": "Calls Certificate Record Result Status Trace",
    "kernels.arguments": "BurstOracle BurstState CurvedArrays",
    "sets.base": "Spikes",
    "sets.spectral.loewner": "GeodesicVertex",
}
_NAMES = {f"{module}:{name}" for module, names in STATES.items() for name in names.split()}
_OWN: dict[str, type] = {}  # classes of users
_NAMED = re.compile(r"[\w.<>]+:[\w.<>]+")


def name_of(kind: type) -> str | None:
    """The name of a class in a checkpoint; None if it may not be there."""
    name = f"{kind.__module__.removeprefix('extremal.')}:{kind.__qualname__}"
    if _OWN.get(f"{kind.__module__}:{kind.__qualname__}") is kind:
        return f"own {kind.__module__}:{kind.__qualname__}"
    return name if name in _NAMES and kind.__module__.startswith("extremal.") else None


def state_class(name: str) -> type:
    """The class of a name; a name that the table does not have is refused, and nothing is imported for it."""
    if name.startswith("own ") and name[4:] in _OWN:
        return _OWN[name[4:]]
    if name not in _NAMES:
        shown = name if _NAMED.fullmatch(name.removeprefix("own ")) else repr(name)
        raise InputError(f"it holds an object of {shown[:100]}, which is no kind of state of this library or of `in_checkpoints`")
    module, _, kind = name.partition(":")
    return getattr(import_module(f"extremal.{module}"), kind)


def in_checkpoints(kind: type) -> type:
    """Let checkpoints hold objects of a class of your own: the state of an estimator or a move. It is a decorator.

    Their attributes must be plain data: numbers, words, arrays, tuples, lists, dicts, or such objects again. A class with other
    attributes defines ``saved_state(self) -> dict`` and ``restore_state(self, state)``. The file names the class; it is found
    only if the module that defines it has been imported before.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @in_checkpoints
    ... @dataclass(frozen=True)
    ... class Smoothed:
    ...     g: object
    ...     exact: bool
    >>> name_of(Smoothed).endswith(":Smoothed"), name_of(dict)
    (True, None)
    """
    if not isinstance(kind, type):
        raise InputError(f"`in_checkpoints(kind=...)` must be a class, got {kind!r}")
    _OWN[f"{kind.__module__}:{kind.__qualname__}"] = kind
    return kind
