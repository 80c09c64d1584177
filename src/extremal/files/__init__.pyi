from . import datasets as datasets
from . import tables as tables
from .outputs import cells as cells
from .outputs import check_out as check_out
from .outputs import printable as printable
from .outputs import terminal as terminal
from .outputs import to_json as to_json
from .outputs import whole_file as whole_file
