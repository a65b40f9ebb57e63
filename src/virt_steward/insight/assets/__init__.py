"""Read-only questions about assets: `survey` (what would be decided), `state` (in a word), `explain` (why)."""
