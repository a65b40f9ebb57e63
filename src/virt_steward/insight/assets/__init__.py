"""Read-only questions about assets.

`survey` is what would be decided, `changes` what would be written, and `impact` which nodes reboot then; `staged` is
what waits, `state` the state in a word, `explain` why.
"""
