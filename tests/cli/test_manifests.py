import json

import pytest
import typer
import yaml
from typer.testing import CliRunner

from virt_steward.apis.crds import CRDS
from virt_steward.cli.manifests import ManifestFormat, crds, printed, rbac
from virt_steward.cli.manifests import manifests as manifests_command
from virt_steward.packaging.parts import namespace
from virt_steward.runtime.access import Access, GrantError, Installation, manifests
from virt_steward.settings import BadSetting

app = typer.Typer()
app.command()(crds)
app.command()(rbac)
app.command(name="manifests")(manifests_command)


def test_crds_prints_a_document_per_kind() -> None:
    result = CliRunner().invoke(app, ["crds"])

    assert result.exit_code == 0
    assert list(yaml.safe_load_all(result.stdout)) == [crd.manifest() for crd in CRDS]
    assert "&id" not in result.stdout


def test_crds_prints_a_list_as_json() -> None:
    result = CliRunner().invoke(app, ["crds", "-o", "json"])

    assert json.loads(result.stdout) == {"apiVersion": "v1", "kind": "List", "items": [crd.manifest() for crd in CRDS]}


@pytest.mark.parametrize(
    ("controllers", "targets", "complaint"),
    [
        pytest.param("nobody", "a", "controller", id="an unknown controller"),
        pytest.param("", "a", "controller", id="a controller without name"),
        pytest.param("approver", "", "a namespace name is empty", id="no target namespaces after all"),
        pytest.param("approver", "a,,b", "a namespace name is empty", id="a target without name"),
    ],
)
def test_rbac_refuses_unknown_or_empty_names(controllers: str, targets: str, complaint: str) -> None:
    result = CliRunner().invoke(app, ["rbac", "--controllers", controllers, "--target-namespaces", targets])

    assert result.stdout == ""
    assert isinstance(result.exception, BadSetting | GrantError)
    assert complaint in str(result.exception)


def test_rbac_limits_secrets_to_named_namespaces() -> None:
    command = ["rbac", "--controllers", "placement", "--secret-namespaces", "east,west"]
    found = list(yaml.safe_load_all(CliRunner().invoke(app, command).stdout))

    roles = [one for one in found if one["kind"].endswith("Role") and "'secrets'" in str(one["rules"])]
    assert [(one["kind"], one["metadata"]["namespace"]) for one in roles] == [("Role", "east"), ("Role", "west")]
    assert [one["rules"] for one in roles] == [
        [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]}]
    ] * 2


@pytest.mark.parametrize("controllers", ["approver", "advisor,autopilot,approver,placement,console"])
def test_rbac_prints_the_namespace_first(controllers: str) -> None:
    """So that `virt-steward rbac | kubectl apply -f -` works on a new cluster."""
    first, *others = yaml.safe_load_all(CliRunner().invoke(app, ["rbac", "--controllers", controllers]).stdout)

    assert first == namespace(Installation())
    assert "Namespace" not in {one["kind"] for one in others}


def test_rbac_adds_no_labels_to_another_namespace() -> None:
    """It may be in use for other pods, which the Pod Security labels of ours could stop."""
    command = ["rbac", "--controllers", "approver", "--namespace", "platform"]
    first, *_ = yaml.safe_load_all(CliRunner().invoke(app, command).stdout)

    assert first == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform"}}


@pytest.mark.parametrize(("flags", "is_granted"), [([], False), (["--example-profile"], True)], ids=["off", "on"])
def test_rbac_grants_foreign_configmaps_only_with_example_profile(flags: list[str], *, is_granted: bool) -> None:
    """Those of its own namespace, by name, are the advisor's records of plans."""
    result = CliRunner().invoke(app, ["rbac", "--controllers", "advisor", *flags])

    assert result.exit_code == 0
    roles = [one for one in yaml.safe_load_all(result.stdout) if one["kind"] == "ClusterRole"]
    granting = [role for role in roles if any("configmaps" in rule["resources"] for rule in role["rules"])]
    names = ["virt-steward-advisor-example-profile"] if is_granted else []
    assert [one["metadata"]["name"] for one in granting] == names


def test_manifests_only_prints_chosen_parts() -> None:
    """What is not printed stays as it is on the cluster."""
    command = ["manifests", "--only", "console", "--image", "mine"]
    found = list(yaml.safe_load_all(CliRunner().invoke(app, command).stdout))

    assert {one["metadata"]["name"].removesuffix("-metrics-token") for one in found} >= {"virt-steward-console"}
    assert {one["metadata"]["labels"]["app.kubernetes.io/component"] for one in found} == {"console"}
    [deployment] = [one for one in found if one["kind"] == "Deployment"]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "mine"


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        pytest.param(["--only", "consoles"], "unknown part 'consoles'; choose from namespace, crds", id="unknown"),
        pytest.param(["--only", "gates"], "unknown part 'gates'", id="gates without --gates"),
        pytest.param(["--only", "crds", "--into", "there"], "leave one of them out", id="into a folder"),
    ],
)
def test_manifests_only_refuses_what_it_cannot_print(flags: list[str], complaint: str) -> None:
    result = CliRunner().invoke(app, ["manifests", *flags])

    assert isinstance(result.exception, BadSetting)
    assert complaint in str(result.exception)


def test_printed_yaml_is_readable() -> None:
    text = printed(manifests(Access("approver"), Installation()), ManifestFormat.YAML)

    assert text.startswith("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: virt-steward-approver\n")
    assert text.count("\n---\n") == 6
    assert "    kubernetes.io/description: 'events: create, patch to record events'\n" in text
