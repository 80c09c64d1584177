from .base import Objective as Objective
from .base import Sampler as Sampler
from .base import Segment as Segment
from .completion import MatrixCompletion as MatrixCompletion
from .intercept import InterceptModel as InterceptModel
from .karcher import KarcherMean as KarcherMean
from .linear import LinearModel as LinearModel
from .separable import Separable as Separable
