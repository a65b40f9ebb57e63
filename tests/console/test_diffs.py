"""The lines of a diff and their kinds."""

from virt_steward.console.diffs import diff_lines


def test_diff_lines_have_kinds_without_file_names() -> None:
    diff = "--- live\n+++ planned\n@@ -1,3 +1,3 @@\n spec:\n-  a: 1\n+  a: 2\n--- b\n"
    assert [(line.kind, line.text) for line in diff_lines(diff)] == [
        ("place", "@@ -1,3 +1,3 @@"),
        ("same", " spec:"),
        ("removed", "-  a: 1"),
        ("added", "+  a: 2"),
        ("removed", "--- b"),
    ]


def test_diff_lines_of_new_object_are_all_added() -> None:
    assert [line.kind for line in diff_lines("@@ -0,0 +1,2 @@\n+kind: A\n+spec: {}\n")] == ["added", "added"]


def test_diff_lines_of_empty_diff_are_empty() -> None:
    assert diff_lines("") == ()
