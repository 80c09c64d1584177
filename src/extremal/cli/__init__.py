"""The command line, a file for each group of commands; `extremal.cli.app` puts them together."""
