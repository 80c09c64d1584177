"""The command line, with one file per group of commands; `commands` assembles them, `app` starts them."""
