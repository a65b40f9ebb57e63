"""Server-side apply as this project uses it: field managers, previews by dry run, and applies under a lock.

Not here: requests (`kube`), field sets and diffs (`objects`), when and why to write (`controllers`).
"""
