"""The command line, a file for each group of commands; `commands` puts them together, `app` starts them."""
