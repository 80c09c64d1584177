from .exact import settle as settle
from .exact import violation as violation
