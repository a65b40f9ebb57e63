"""Diffs as lines with a sort each."""

from virt_steward.console.diffs import lines


def test_each_line_is_of_one_sort_and_files_are_not_named() -> None:
    diff = "--- live\n+++ planned\n@@ -1,3 +1,3 @@\n spec:\n-  a: 1\n+  a: 2\n--- b\n"
    assert [(line.sort, line.text) for line in lines(diff)] == [
        ("place", "@@ -1,3 +1,3 @@"),
        ("same", " spec:"),
        ("removed", "-  a: 1"),
        ("added", "+  a: 2"),
        ("removed", "--- b"),
    ]


def test_what_is_new_as_a_whole_has_no_place() -> None:
    assert [line.sort for line in lines("@@ -0,0 +1,2 @@\n+kind: A\n+spec: {}\n")] == ["added", "added"]


def test_nothing_has_no_lines() -> None:
    assert lines("") == ()
