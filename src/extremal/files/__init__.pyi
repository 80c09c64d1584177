from . import datasets as datasets
