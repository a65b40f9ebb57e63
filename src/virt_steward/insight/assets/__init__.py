"""Why each asset is as it is: what the autopilot would apply, what the server says, and the state in a word."""
