import json

import pytest
import typer
import yaml
from typer.testing import CliRunner

from virt_steward.apis import CRDS
from virt_steward.cli.manifests import ManifestFormat, crds, printed, rbac
from virt_steward.runtime.access import Access, GrantError, Installation, manifests
from virt_steward.settings import BadSetting

app = typer.Typer()
app.command()(crds)
app.command()(rbac)


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
        pytest.param("approver", "", "a namespace has a name", id="no target namespaces after all"),
        pytest.param("approver", "a,,b", "a namespace has a name", id="a target without name"),
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


def test_printed_yaml_is_readable() -> None:
    text = printed(manifests(Access("approver"), Installation()), ManifestFormat.YAML)

    assert text.startswith("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: virt-steward-approver\n")
    assert text.count("\n---\n") == 4
    assert "kubernetes.io/description: |-\n      events: create, patch to tell what was decided\n" in text
