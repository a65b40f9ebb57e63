"""Exclusions, and the patterns in them."""

import time

import pytest

from virt_steward.controllers.autopilot.overrides.exclusions import Exclusions, UnreadableExclusions, parse
from virt_steward.controllers.autopilot.overrides.globs import BadGlob, Glob
from virt_steward.objects.identity import Key, Kind, Ref

TWO = """
- kind: KubeDescheduler
  name: cluster
- kind: Service
  name: virt-*
  namespace: prod-?
"""


def rules(text: str | None) -> Exclusions:
    parsed = parse(text)
    assert isinstance(parsed, Exclusions), parsed
    return parsed


@pytest.mark.parametrize("text", [None, "", "  \n", "# nothing", "[]", "---"])
def test_parse_excludes_nothing(text: str | None) -> None:
    assert rules(text) == Exclusions()


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "rule"),
    [
        ("KubeDescheduler", "openshift-kube-descheduler-operator", "cluster", 1),
        ("KubeDescheduler", "", "cluster", 1),
        ("KubeDescheduler", "", "clusters", None),
        ("kubedescheduler", "", "cluster", None),
        ("Service", "prod-a", "virt-metrics", 2),
        ("Service", "prod-ab", "virt-metrics", None),
        ("Service", "prod-a", "metrics", None),
    ],
)
def test_rule_covers_by_kind_name_and_namespace(kind: str, namespace: str, name: str, rule: int | None) -> None:
    found = rules(TWO).excludes(kind, namespace, name)
    assert (found.number if found else None) == rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        pytest.param("kind: A", None, id="a single rule without its dash"),
        pytest.param("A/b", None, id="a text"),
        pytest.param("- kind: A\n  name: b\n---\n- kind: C", None, id="two documents"),
        pytest.param("- kind: 'A", None, id="broken YAML"),
        pytest.param("- kind: A\n\tname: b", None, id="a tab"),
        pytest.param("\x00", None, id="a control character"),
        pytest.param("- A", 1, id="a text for a rule"),
        pytest.param("- kind: A\n  name: b\n- name: b", 2, id="no kind"),
        pytest.param("- kind: A", 1, id="no name"),
        pytest.param("- kind: A\n  name:", 1, id="an empty name"),
        pytest.param("- kind: A\n  name: [b]", 1, id="a list for a name"),
        pytest.param("- kind: A\n  name: b\n  nameSpace: c", 1, id="a misspelled key"),
        pytest.param("- kind: A\n  name: b\n  kind: C\n  name: d", 1, id="a forgotten dash"),
        pytest.param("- kind: A\n  name: '[b'", 1, id="a broken pattern"),
        pytest.param("- kind: A\n  name: b\n  namespace: '\\'", 1, id="a broken pattern for the namespace"),
        pytest.param("- &a {kind: A, name: b}\n- *a", 2, id="an alias"),
        pytest.param("- " * 8_000, 1, id="a tower of lists"),
        pytest.param("[" * 8_000, 1, id="a tower of brackets"),
        pytest.param("? " * 8_000, None, id="a tower of keys"),
    ],
)
def test_parse_refuses_bad_rules(text: str, rule: int | None) -> None:
    found = parse(text)
    assert isinstance(found, UnreadableExclusions)
    assert found.rule == rule
    assert found.why.startswith("rule ") is (rule is not None)
    assert len(found.why) < 500


def test_parse_reads_values_as_text() -> None:
    parsed = rules("- {kind: A, name: 010}\n- {kind: A, name: on}\n- {kind: A, name: 2024-10-01}")
    assert [rule.name.text for rule in parsed.rules] == ["010", "on", "2024-10-01"]


def test_parse_ignores_yaml_tags() -> None:
    assert rules("- kind: !!python/name:os.system A\n  name: b").excludes("A", "", "b")


def test_unmatched_lists_rules_without_objects() -> None:
    known = [Ref(Kind("example.com", "KubeDescheduler"), Key("somewhere", "cluster"))]
    assert [str(rule) for rule in rules(TWO).unmatched(known)] == ["rule 2 (Service virt-* in prod-?)"]


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("virt-*", ("virt-", "virt-a-b"), ("virt", "a-virt-")),
        ("*", ("", "a.b-c"), ()),
        ("a*b*c", ("abc", "a-b-bc", "abcbc"), ("ab", "abcb")),
        ("a?c", ("abc",), ("ac", "abbc")),
        ("9[0-9]-*", ("90-x",), ("9-x", "9a-x")),
        ("[^a-c]x", ("dx",), ("ax", "x")),
        ("[a\\-z]", ("-", "a", "z"), ("b",)),
        ("a\\*", ("a*",), ("ab",)),
        ("a**b", ("ab", "axb"), ("a",)),
        ("", ("",), ("a",)),
    ],
)
def test_glob_matches_like_a_shell(pattern: str, fits: tuple[str, ...], fits_not: tuple[str, ...]) -> None:
    glob = Glob.parse(pattern)
    assert all(map(glob.matches, fits))
    assert not any(map(glob.matches, fits_not))


@pytest.mark.parametrize("pattern", ["[", "[]", "[^]", "[]a]", "[a", "[a-", "[-a]", "[a-]", "\\", "[\\", "a[b\\]"])
def test_glob_refuses_bad_patterns(pattern: str) -> None:
    with pytest.raises(BadGlob):
        Glob.parse(pattern)


def test_glob_takes_linear_time() -> None:
    started = time.process_time()
    assert not Glob.parse("*a" * 120 + "b").matches("a" * 253)
    assert not Glob.parse("*?" * 500).matches("a" * 253)
    assert time.process_time() - started < 1
