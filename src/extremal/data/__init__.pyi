from .accept import as_data as as_data
from .base import Data as Data
from .csr import CSR as CSR
from .dense import Dense as Dense
from .entries import Entries as Entries
