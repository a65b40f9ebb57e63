from pathlib import Path
from typing import Any

import pytest

from tests.catalog.builders import DESCHEDULERS, TUNING, an_asset, write_asset
from virt_steward.catalog.asset import Install
from virt_steward.catalog.conditions import AnnotationCondition, NotSetElsewhereCondition
from virt_steward.catalog.load import MANAGED_BY, MANAGER, CatalogError, load
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.paths import Pointer
from virt_steward.objects.yamltext import yaml_text

HCO = {
    "apiVersion": "@served",
    "kind": "HyperConverged",
    "plural": "hyperconvergeds",
    "name": "kubevirt-hyperconverged",
}


def a_tuning(name: str) -> dict[str, str]:
    return TUNING | {"name": name}


def test_load_orders_assets_of_any_depth(tmp_path: Path) -> None:
    write_asset(tmp_path / "b" / "late", object=a_tuning("one"), reconcile_order=2)
    write_asset(tmp_path / "a" / "deeper" / "second", object=a_tuning("two"))
    write_asset(tmp_path / "c" / "first", object=a_tuning("three"))
    write_asset(tmp_path / "z" / "golden", object=HCO, phase=0, reconcile_order=9)

    assert [asset.name for asset in load(tmp_path).assets] == ["golden", "first", "second", "late"]


def test_load_reads_the_declaration(tmp_path: Path) -> None:
    write_asset(
        tmp_path / "host" / "fast",
        group="speed",
        install="opt-in",
        gate_crd=DESCHEDULERS,
        conditions=[
            {"type": "annotation", "key": "platform.kubevirt.io/enable-fast", "value": "true"},
            {"type": "not-set-elsewhere", "pool": "worker", "kernelArgument": "psi=1"},
        ],
        params={"level": 3},
    )
    (asset,) = load(tmp_path).assets

    assert asset.object.kind == Kind("tuning.example", "Tuning")
    assert asset.install is Install.OPT_IN
    assert asset.conditions == (
        AnnotationCondition("platform.kubevirt.io/enable-fast", "true"),
        NotSetElsewhereCondition("worker", kernel_argument="psi=1"),
    )
    assert asset.params == {"level": 3}
    assert asset.path == "host/fast/object.yaml.j2"


def test_load_finds_files_of_asset_and_topic(tmp_path: Path) -> None:
    write_asset(tmp_path / "host" / "fast", files=["own.sh", "shared.sh"])
    (tmp_path / "host" / "fast" / "own.sh").write_text("own")
    (tmp_path / "host" / "shared.sh").write_text("shared")

    assert load(tmp_path).assets[0].contents == {"own.sh": "own", "shared.sh": "shared"}


@pytest.mark.parametrize(
    ("declared", "named"),
    [
        pytest.param({"colour": "red"}, "`colour`", id="an-unknown-key"),
        pytest.param({"install": "sometimes"}, "`$.install`", id="an-unknown-way-to-install"),
        pytest.param({"install": "opt-in"}, "needs a condition to opt in by", id="opt-in-without-condition"),
        pytest.param({"conditions": [{"type": "moon-phase"}]}, "moon-phase", id="an-unknown-condition"),
        pytest.param({"conditions": [{"type": "annotation"}]}, "`key`", id="a-condition-without-its-key"),
        pytest.param(
            {"conditions": [{"type": "annotation", "key": "platform.kubevirt.oi/enable-fast", "value": "true"}]},
            "unknown annotation 'platform.kubevirt.oi/enable-fast'",
            id="a-misspelt-prefix-of-an-annotation",
        ),
        pytest.param(
            {"conditions": [{"type": "annotation", "key": "platform.kubevirt.io/"}]},
            "unknown annotation 'platform.kubevirt.io/'",
            id="a-prefix-alone",
        ),
        pytest.param(
            {"conditions": [{"type": "hardware-detection", "detector": "ghosts"}]}, "ghosts", id="an-unknown-detector"
        ),
        pytest.param({"conditions": [{"type": "topology", "field": "platform"}]}, "platform", id="no-boolean"),
        pytest.param(
            {"conditions": [{"type": "not-set-elsewhere", "pool": "worker"}]}, "swap", id="nothing-to-look-for"
        ),
        pytest.param({"reads": {"hco": ["spec"]}}, "'spec' is no JSON pointer", id="a-bad-pointer-into-the-hco"),
        pytest.param(
            {"reads": {"schemas": {"a": {"crd": "a.b", "paths": ["x"]}}}}, "'x' is no", id="a-bad-pointer-into-a-schema"
        ),
        pytest.param({"phase": 0}, "phase 0", id="phase-zero-for-what-is-no-hco"),
        pytest.param({"object": HCO}, "phase 0", id="a-later-phase-for-the-hco"),
        pytest.param({"object": TUNING | {"apiVersion": "@served"}}, "@served", id="served-for-what-is-no-hco"),
        pytest.param({"name": "other"}, "'other'", id="another-name-than-its-folder"),
        pytest.param({"files": ["gone.sh"]}, "gone.sh", id="a-file-that-is-not-there"),
        pytest.param({"files": ["../fast/asset.yaml"]}, "../fast/asset.yaml", id="a-file-elsewhere"),
    ],
)
def test_load_refuses_bad_declaration(tmp_path: Path, declared: dict[str, Any], named: str) -> None:
    write_asset(tmp_path / "fast", **declared)

    with pytest.raises(CatalogError) as refused:
        load(tmp_path)
    assert str(refused.value).startswith("fast/")
    assert named in str(refused.value)


def test_load_refuses_invalid_yaml(tmp_path: Path) -> None:
    write_asset(tmp_path / "fast")
    (tmp_path / "fast" / "asset.yaml").write_text("name: [")

    with pytest.raises(CatalogError, match=r"^fast/asset\.yaml: "):
        load(tmp_path)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("a/fast", "b/fast", id="with-one-name"),
        pytest.param("a/one", "a/two", id="for-one-object"),
    ],
)
def test_load_refuses_duplicates(tmp_path: Path, first: str, second: str) -> None:
    write_asset(tmp_path / first)
    write_asset(tmp_path / second)

    with pytest.raises(CatalogError, match=f"{first}/object"):
        load(tmp_path)


def a_tombstone(**metadata: Any) -> dict[str, Any]:
    labels = {MANAGED_BY: MANAGER}
    return {
        "apiVersion": "tuning.example/v1",
        "kind": "Tuning",
        "metadata": {"name": "slow", "labels": labels, **metadata},
    }


def bury(root: Path, obj: Any) -> None:
    (root / "tombstones" / "0.1").mkdir(parents=True)
    (root / "tombstones" / "0.1" / "slow.yaml").write_text(yaml_text(obj))


def test_tombstone_takes_plural_from_an_asset(tmp_path: Path) -> None:
    write_asset(tmp_path / "fast")
    bury(tmp_path, a_tombstone(namespace="here"))
    (tombstone,) = load(tmp_path).tombstones

    assert tombstone.ref == Ref(Kind("tuning.example", "Tuning"), Key("here", "slow"))
    assert tombstone.ref.kind.plural == "tunings"
    assert tombstone.path == "tombstones/0.1/slow.yaml"


def test_tombstone_names_the_asset_that_replaces_it(tmp_path: Path) -> None:
    write_asset(tmp_path / "fast")
    bury(tmp_path, a_tombstone(annotations={"platform.kubevirt.io/replaced-by": "fast"}))
    catalog = load(tmp_path)

    assert catalog.replaced_by("fast") == catalog.tombstones
    assert catalog.replaced_by("other") == ()
    assert catalog.names_of(catalog.tombstones[0].ref.kind) == {"fast", "slow"}, "what is obsolete was ours, too"


def test_tombstone_declares_plural_of_unused_kind(tmp_path: Path) -> None:
    bury(tmp_path, a_tombstone(annotations={"platform.kubevirt.io/plural": "tunings"}))

    assert load(tmp_path).tombstones[0].ref.kind.plural == "tunings"


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        pytest.param(a_tombstone(labels={}), "label", id="the-label-that-says-it-was-ours"),
        pytest.param(a_tombstone(), "plural", id="any-hint-of-its-plural"),
        pytest.param(
            a_tombstone(
                annotations={"platform.kubevirt.io/plural": "tunings", "platform.kubevirt.io/replaced-by": "faster"}
            ),
            "there is no asset faster",
            id="an-asset-that-replaces-it",
        ),
        pytest.param({"kind": "Tuning"}, "apiVersion", id="a-name"),
        pytest.param("slow", "apiVersion", id="being-an-object"),
    ],
)
def test_load_refuses_bad_tombstone(tmp_path: Path, obj: Any, problem: str) -> None:
    bury(tmp_path, obj)

    with pytest.raises(CatalogError, match=problem):
        load(tmp_path)


@pytest.mark.parametrize(
    ("names", "inside"),
    [
        pytest.param({"fast"}, True, id="its-name"),
        pytest.param({"speed"}, True, id="its-group"),
        pytest.param({"other"}, False, id="another"),
        pytest.param({""}, False, id="nothing"),
    ],
)
def test_asset_is_in_scope_by_name_or_group(names: set[str], inside: bool) -> None:
    assert an_asset(group="speed").in_scope(names) is inside


def test_asset_without_group_is_not_in_scope_by_group() -> None:
    assert not an_asset().in_scope({""})


def test_catalog_needs_what_its_assets_read(tmp_path: Path) -> None:
    rule = {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps", "name": "rules", "namespace": "here"}
    write_asset(
        tmp_path / "one",
        object=a_tuning("one"),
        conditions=[
            {"type": "hardware-detection", "detector": "gpuPresent"},
            {"type": "not-set-elsewhere", "pool": "worker", "swap": True},
        ],
        reads={
            "objects": {"a": {**rule, "paths": ["/data/a"]}},
            "schemas": {"d": {"crd": "d.e", "paths": ["/spec/a"]}},
        },
    )
    write_asset(
        tmp_path / "two",
        object=a_tuning("two"),
        conditions=[{"type": "topology", "field": "isHCP"}],
        reads={
            "hco": ["/spec/liveMigrationConfig"],
            "images": ["exporter"],
            "objects": {"b": {**rule, "paths": ["/data/b"]}},
            "schemas": {"d": {"crd": "d.e", "paths": ["/spec/b"]}},
        },
    )
    needs = load(tmp_path).needs

    assert (needs.nodes, needs.topology, needs.machine_configs) == (True, True, True)
    assert needs.hco == {Pointer(("spec", "liveMigrationConfig"))}
    assert needs.images == {"exporter"}
    assert [(read.ref.key, read.paths) for read in needs.objects] == [(Key("here", "rules"), ("/data/a", "/data/b"))]
    assert needs.schemas == {"d.e": {Pointer(("spec", "a")), Pointer(("spec", "b"))}}
