"""Assets as code: loading, conditions, context and rendering. Not here: requests to a server, and decisions."""
