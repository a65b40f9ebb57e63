"""What people may override, read from annotations and applied to intents. Pure: no requests, no clock, no events."""
