"""The CRD of KubevirtConfig, on a real API server."""

import uuid
from typing import Any

import pytest

from tests.machines import a_config, any_reference_allowed, the_config
from tests.widgets import install_crd
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG_CRD
from virt_steward.kube.client import Client
from virt_steward.kube.errors import Invalid
from virt_steward.objects.identity import Key


@pytest.fixture
async def crd(admin: Client) -> None:
    await install_crd(admin, KUBEVIRT_CONFIG_CRD.manifest())


def a_reference(secret: str) -> dict[str, Any]:
    return a_config(f"c-{uuid.uuid4().hex[:8]}", Key("home", secret))


@pytest.mark.usefixtures("crd")
@pytest.mark.parametrize("secret", ["a=b", "East", "a b", "a,b", "-a", "a.", "a/b"])
async def test_crd_refuses_name_that_no_secret_has(admin: Client, secret: str) -> None:
    with pytest.raises(Invalid, match="a Secret is named in lower case letters, digits"):
        await admin.create(a_reference(secret), dry_run=True)


@pytest.mark.usefixtures("crd")
@pytest.mark.parametrize("secret", ["", "east", "east.kubeconfig", "0-a.b"])
async def test_crd_accepts_every_name_of_a_secret(admin: Client, secret: str) -> None:
    await admin.create(a_reference(secret), dry_run=True)


@pytest.mark.usefixtures("crd")
async def test_crd_takes_status_and_correction_of_config_that_was_valid_before(admin: Client) -> None:
    config = a_reference("a=b")
    ref = the_config(config["metadata"]["name"])
    async with any_reference_allowed(admin):
        await admin.create(config)
    try:
        await admin.merge_patch(ref, {"status": {"phase": "CredentialsInvalid"}}, subresource="status")
        await admin.merge_patch(ref, {"spec": {"kubeconfigSecretRef": "east"}})
    finally:
        await admin.delete(ref)


@pytest.mark.usefixtures("crd")
async def test_crd_keeps_status_that_others_write(admin: Client) -> None:
    """The upstream CRD has no formats and no limits in its status."""
    config = a_reference("east")
    ref = the_config(config["metadata"]["name"])
    status = {"name": "east", "phase": "Ready", "status": "up", "message": "m" * 5000, "created": "last year"}
    await admin.create(config)
    try:
        written = await admin.merge_patch(ref, {"status": status}, subresource="status")
        assert status.items() <= written["status"].items()
    finally:
        await admin.delete(ref)


def test_crd_has_columns_of_upstream_crd() -> None:
    (version,) = KUBEVIRT_CONFIG_CRD.manifest()["spec"]["versions"]
    columns = [column["name"] for column in version["additionalPrinterColumns"] if not column.get("priority")]
    assert columns[:5] == ["Name", "Provider", "Phase", "Status", "Created"]
