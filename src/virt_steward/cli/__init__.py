"""The command line: one module per group of commands. It prints what others answer, and decides nothing."""
