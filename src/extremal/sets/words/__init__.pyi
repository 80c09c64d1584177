from .read import Reading as Reading
from .read import read_constraint as read_constraint
from .words import check_words as check_words
