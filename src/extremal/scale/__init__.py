"""Shards on the workers of a Dask cluster: imported on request only, with the packages of the extra `scale`."""
