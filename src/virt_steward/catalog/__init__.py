"""Assets as code sees them: load, look, check conditions, render. Nothing here asks a server or writes anything."""
