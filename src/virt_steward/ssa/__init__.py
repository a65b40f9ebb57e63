"""Server-side apply as this project uses it: who may write what, what a write would change, and writing under a lock.

Not here: requests (`kube`), field sets and diffs (`objects`), when and why to write (`controllers`).
"""
