"""The command line: a module per command, and shared flags and output. It prints answers, and decides nothing."""
