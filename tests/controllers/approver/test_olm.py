"""What is read of OLM's plans, in all the forms that they have, and of those that nobody should have written."""

import sys
import tracemalloc
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.controllers.approver.builders import CACHE, V1
from virt_steward.controllers.approver.olm import (
    APPROVED_BECAUSE,
    APPROVED_BY,
    ApprovalStamp,
    InstallPlan,
    decode_csv,
    decode_plan,
)
from virt_steward.ssa import managers


def properties(*packages: str) -> str:
    """As OLM writes them: a list as text, in which the package is one among others."""
    listed = [{"type": "olm.gvk", "value": {"group": "example.com", "kind": "Db", "version": "v1"}}]
    listed += [{"type": "olm.package", "value": {"packageName": one, "version": "1.0.0"}} for one in packages]
    return text({"properties": listed})


def text(content: Any) -> str:
    return msgspec.json.encode(content).decode()


def a_step(
    kind: str, manifest: Any, *, csv: str = V1, name: str = V1, group: str = "operators.coreos.com"
) -> dict[str, Any]:
    return {"resolving": csv, "resource": {"group": group, "kind": kind, "name": name, "manifest": manifest}}


def an_inlined_csv(*packages: str, csv: str = V1) -> dict[str, Any]:
    annotations = {"operatorframework.io/properties": properties(*packages), "alm-examples": "[]"}
    manifest = {"kind": "ClusterServiceVersion", "metadata": {"name": csv, "annotations": annotations}, "spec": {}}
    return a_step("ClusterServiceVersion", text(manifest), csv=csv, name=csv)


def a_reference(*packages: str, csv: str = V1) -> dict[str, Any]:
    manifest = {"kind": "ConfigMap", "name": "bundle", "namespace": "olm", "properties": properties(*packages)}
    return a_step("ClusterServiceVersion", text(manifest), csv=csv, name=csv)


def a_lookup(*packages: str, csv: str = V1) -> dict[str, Any]:
    return {"identifier": csv, "path": "registry/bundle", "properties": properties(*packages)}


def a_brought_subscription(package: str, csv: str = CACHE) -> dict[str, Any]:
    manifest = {"kind": "Subscription", "spec": {"name": package, "channel": "stable", "startingCSV": csv}}
    return a_step("Subscription", text(manifest), csv=csv, name=f"{package}-stable")


def decoded(
    steps: Iterable[dict[str, Any]] = (), lookups: Iterable[dict[str, Any]] = (), **more: dict[str, Any]
) -> InstallPlan:
    return decode_plan(
        msgspec.json.encode(
            {
                "metadata": {"name": "install-1", "namespace": "shop", **more.get("metadata", {})},
                "spec": {"approval": "Manual", "approved": False, "clusterServiceVersionNames": [V1]}
                | more.get("spec", {}),
                "status": {"phase": "RequiresApproval", "plan": list(steps), "bundleLookups": list(lookups)},
            }
        )
    )


@pytest.mark.parametrize(
    ("steps", "lookups"),
    [
        pytest.param([an_inlined_csv("db")], [], id="an-inlined-csv"),
        pytest.param([a_reference("db")], [], id="a-reference-to-an-unpacked-bundle"),
        pytest.param([], [a_lookup("db")], id="a-lookup-before-the-bundle-is-unpacked"),
        pytest.param([a_reference("db")], [a_lookup("db")], id="two-that-agree"),
        pytest.param([an_inlined_csv()], [a_lookup("db")], id="one-beside-another-that-tells-nothing"),
        pytest.param([a_brought_subscription("db", V1)], [], id="a-subscription-that-the-plan-brings"),
    ],
)
def test_the_package_is_told_by(steps: list[dict[str, Any]], lookups: list[dict[str, Any]]) -> None:
    assert decoded(steps, lookups).packages == {V1: "db"}


def test_a_version_is_kept_where_the_name_says_otherwise_and_all_bundles_agree() -> None:
    rebuilt = a_lookup("db")
    rebuilt["properties"] = rebuilt["properties"].replace("1.0.0", "1.0.0+0.1634")
    assert decoded([], [rebuilt]).versions == {V1: "1.0.0+0.1634"}
    assert decoded([an_inlined_csv("db")], [rebuilt]).versions == {}
    assert decoded([an_inlined_csv("db")]).versions == {}
    rebuilt["properties"] = rebuilt["properties"].replace("1.0.0+0.1634", "0.0")
    assert decoded([], [rebuilt]).versions == {V1: "0.0"}


def test_an_installed_csv_keeps_the_version_of_its_bundle() -> None:
    metadata = {"name": "x.v1", "annotations": {"operatorframework.io/properties": properties("cache")}}
    assert decode_csv(msgspec.json.encode({"metadata": metadata})).version == "1.0.0"
    assert decode_csv(msgspec.json.encode({"metadata": {"name": "x.v1"}})).version == ""


@pytest.mark.parametrize(
    ("steps", "lookups"),
    [
        pytest.param([a_reference("db")], [a_lookup("cache")], id="step-and-lookup"),
        pytest.param([an_inlined_csv("db"), an_inlined_csv("cache")], [], id="two-steps"),
        pytest.param([an_inlined_csv("db", "cache")], [], id="the-properties-of-one"),
        pytest.param([an_inlined_csv("cache", csv=CACHE), a_brought_subscription("db")], [], id="csv-and-subscription"),
    ],
)
def test_a_package_is_in_doubt_that_is_told_differently_by(
    steps: list[dict[str, Any]], lookups: list[dict[str, Any]]
) -> None:
    assert set(decoded(steps, lookups).packages.values()) == {""}


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="cut-off"),
        pytest.param("[1, 2]", id="a-list"),
        pytest.param(None, id="null"),
        pytest.param({"kind": "ClusterServiceVersion"}, id="no-text"),
        pytest.param('{"metadata": 7, "properties": 8}', id="of-other-types"),
        pytest.param('{"properties": "{"}', id="with-cut-off-properties"),
        pytest.param(
            text({"properties": text({"properties": [{"type": "olm.package", "value": "db"}]})}), id="odd-package"
        ),
        pytest.param('{"spec": ' + "[" * 100_000 + "]" * 100_000 + "}", id="nested-without-end"),
        pytest.param(
            '{"metadata": {"annotations": {"operatorframework.io/properties": "\\ud800"}}}', id="half-a-character"
        ),
    ],
)
def test_a_plan_is_read_whose_manifest_is(manifest: Any) -> None:
    garbage = [a_step("ClusterServiceVersion", manifest), a_step("Subscription", manifest, name="db-stable", csv=CACHE)]
    plan = decoded(garbage)
    assert plan.csvs == (V1,)
    assert V1 not in plan.packages
    assert plan.packages.get(CACHE, "") == ""
    assert plan.brings == {"db-stable": ""}


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_no_manifest_keeps_a_plan_from_being_read(manifest: str) -> None:
    plan = decoded([a_step("ClusterServiceVersion", manifest)], [{"identifier": V1, "properties": manifest}])
    assert plan.phase == "RequiresApproval"


@pytest.mark.parametrize(
    ("metadata", "cache", "db"),
    [
        pytest.param({"labels": {"operators.coreos.com/cache.shop": ""}}, True, False, id="its label says so"),
        pytest.param(
            {"annotations": {"operatorframework.io/properties": properties("cache")}},
            True,
            False,
            id="its bundle says so",
        ),
        pytest.param({}, True, True, id="it says nothing and may be anything"),
    ],
)
def test_an_installed_csv_is_of_a_package_if(metadata: dict[str, Any], cache: bool, db: bool) -> None:
    csv = decode_csv(msgspec.json.encode({"metadata": {"name": "x.v1", "namespace": "shop", **metadata}}))
    assert (csv.is_of("cache"), csv.is_of("db")) == (cache, db)


def test_only_the_subscriptions_of_olm_are_brought_along() -> None:
    foreign = a_step("Subscription", text({"spec": {"name": "cache"}}), name="mine", group="messaging.knative.dev")
    plan = decoded([foreign, an_inlined_csv("db"), a_brought_subscription("cache")])
    assert plan.brings == {"cache-stable": "cache"}
    assert plan.packages == {V1: "db", CACHE: "cache"}


def test_of_a_plan_that_is_done_no_steps_are_kept() -> None:
    steps = [an_inlined_csv("db"), a_brought_subscription("cache")]
    plan = decoded(steps, spec={"approved": True})
    assert (plan.csvs, plan.packages, plan.brings) == ((V1,), {}, {})


def owned(manager: str, *keys: str) -> dict[str, Any]:
    """An entry of managedFields for annotations."""
    fields = {f"f:{key}": {} for key in keys}
    return {"manager": manager, "operation": "Update", "fieldsV1": {"f:metadata": {"f:annotations": fields}}}


def test_of_all_annotations_only_our_stamp_is_kept() -> None:
    metadata = {
        "annotations": {APPROVED_BY: "uid", "long": "x" * 10_000},
        "managedFields": [owned("kubectl-annotate", "long"), owned(managers.APPROVAL.name, APPROVED_BY)],
    }
    plan = decoded(metadata=metadata)
    assert plan.stamp.by == "uid"
    assert (plan.stamp.at, plan.stamp.because) == ("", "")


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([], id="nobody"),
        pytest.param([owned("kubectl", APPROVED_BY, APPROVED_BECAUSE)], id="another-manager"),
        pytest.param(
            [owned(managers.APPROVAL.name, APPROVED_BY), owned("kubectl", APPROVED_BECAUSE)], id="another-in-part"
        ),
        pytest.param([{"manager": managers.APPROVAL.name, "fieldsV1": {"f:spec": {}}}], id="ours-but-not-the-stamp"),
        pytest.param([{"manager": managers.APPROVAL.name}], id="ours-but-nothing"),
    ],
)
def test_stamp_owned_by_others_does_not_count(entries: list[dict[str, Any]]) -> None:
    annotations = {APPROVED_BY: "uid", APPROVED_BECAUSE: "I say so"}
    assert decoded(metadata={"annotations": annotations, "managedFields": entries}).stamp == ApprovalStamp()
    both = [owned(managers.APPROVAL.name, APPROVED_BY, APPROVED_BECAUSE)]
    assert decoded(metadata={"annotations": annotations, "managedFields": both}).stamp.because == "I say so"


@pytest.mark.parametrize("missing", ["spec", "status"])
def test_a_plan_that_olm_has_only_begun_to_write_is_not_open(missing: str) -> None:
    whole = {
        "metadata": {"name": "install-1", "namespace": "shop"},
        "spec": {"approval": "Manual"},
        "status": {"phase": "RequiresApproval"},
    }
    assert decode_plan(msgspec.json.encode(whole)).is_open
    assert not decode_plan(msgspec.json.encode({name: part for name, part in whole.items() if name != missing})).is_open


def test_a_large_plan_becomes_a_small_record() -> None:
    steps = [a_step("CustomResourceDefinition", "x" * 10_000, group="apiextensions.k8s.io") for _ in range(29)]
    raw = msgspec.json.encode(
        {
            "metadata": {"name": "install-1", "namespace": "shop", "managedFields": [{"manager": "catalog"}] * 50},
            "spec": {"approval": "Manual", "clusterServiceVersionNames": [V1]},
            "status": {"phase": "RequiresApproval", "plan": [*steps, an_inlined_csv("db")], "bundleLookups": []},
        }
    )
    assert len(raw) > 290_000
    decode_plan(raw)
    tracemalloc.start()
    try:
        plan = decode_plan(raw)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert plan.packages == {V1: "db"}
    assert kept < 3_000 + sys.getsizeof(plan)
