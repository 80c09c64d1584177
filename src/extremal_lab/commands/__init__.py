"""Commands of the laboratory, which the command line of the library finds by their entry points."""
