from .comparing.front import compare as compare
from .comparing.metrics import METRICS as METRICS
from .comparing.result import Comparison as Comparison
from .reproduction.loops import Loop as Loop
from .reproduction.spec import Problem as Problem
