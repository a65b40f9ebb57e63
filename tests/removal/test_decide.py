"""What becomes of an object at the removal, from records of what was found."""

import pytest

from virt_steward.catalog.load import MANAGED_BY, MANAGER
from virt_steward.controllers.autopilot.annotation_keys import CREATED, PAUSED
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.objects.corekinds import CONFIG_MAP, NAMESPACE
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward.removal.act import release_patch
from virt_steward.removal.decide import RemovalAction, RemovalStep, decide_removal, refusal
from virt_steward.removal.found import FoundObject, InstallationSeen, Part, found_object
from virt_steward.ssa.managers import ADVISOR, APPROVAL, AUTOPILOT, RELEASE
from virt_steward.ssa.release import PLACEHOLDER_FIELDS

DELETE, KEEP, FREE = RemovalAction.DELETE, RemovalAction.KEEP, RemovalAction.RELEASE
ROLE = Ref(Kind("rbac.authorization.k8s.io", "ClusterRole"), Key("", "virt-steward-advisor"))
OURS = Ref(CUSTOM_RESOURCE_DEFINITION, Key("", "virtplatformconfigs.advisor.kubevirt.io"))
VITISTACK = Ref(CUSTOM_RESOURCE_DEFINITION, Key("", "kubevirtconfigs.vitistack.io"))
HOME = Ref(NAMESPACE, Key("", "virt-steward"))
SWAP = Ref(MACHINE_CONFIG, Key("", "90-worker-swap-online"))
RECORD = Ref(CONFIG_MAP, Key("virt-steward", "virt-steward-plan-x"))


def step_for(one: FoundObject, *, delete_crds: bool = False) -> RemovalStep:
    [step] = decide_removal(InstallationSeen("virt-steward", (one,)), delete_crds=delete_crds)
    return step


@pytest.mark.parametrize(
    ("one", "action", "reason"),
    [
        pytest.param(FoundObject(ROLE, Part.INSTALLATION), DELETE, "", id="a role"),
        pytest.param(FoundObject(RECORD, Part.RECORD), DELETE, "", id="a record"),
        pytest.param(FoundObject(ROLE, Part.POLICY), DELETE, "", id="a policy"),
        pytest.param(FoundObject(RECORD, Part.FREEZE), KEEP, "people have set it", id="a freeze"),
        pytest.param(FoundObject(HOME, Part.NAMESPACE), KEEP, "kubectl delete namespace virt-steward", id="namespace"),
        pytest.param(FoundObject(OURS, Part.CRD, count=2), KEEP, "with 2 objects", id="a CRD"),
        pytest.param(
            FoundObject(ROLE, Part.INSTALLATION, labels={"app.kubernetes.io/managed-by": "Helm"}),
            KEEP,
            "helm uninstall",
            id="of Helm",
        ),
        pytest.param(
            FoundObject(ROLE, Part.INSTALLATION, labels={"olm.owner": "virt-steward.v1"}),
            KEEP,
            "OLM installed it with virt-steward.v1",
            id="of OLM",
        ),
        pytest.param(FoundObject(SWAP, Part.TARGET, managers=(AUTOPILOT.name,)), FREE, "its values stay", id="owned"),
        pytest.param(FoundObject(SWAP, Part.TARGET, annotations=(CREATED,)), FREE, "its values stay", id="signed"),
        pytest.param(FoundObject(SWAP, Part.TARGET, annotations=(PAUSED,)), KEEP, "it is of others", id="paused"),
    ],
)
def test_decision_by_part(one: FoundObject, action: RemovalAction, reason: str) -> None:
    step = step_for(one)
    assert step.action is action
    assert reason in step.reason


@pytest.mark.parametrize(("ref", "action"), [(OURS, DELETE), (VITISTACK, KEEP)])
def test_crds_are_deleted_on_request_unless_others_use_them(ref: Ref, action: RemovalAction) -> None:
    assert step_for(FoundObject(ref, Part.CRD), delete_crds=True).action is action


def test_release_names_what_it_removes_and_what_stays() -> None:
    one = FoundObject(
        SWAP,
        Part.TARGET,
        labels={MANAGED_BY: MANAGER},
        annotations=(CREATED, PAUSED),
        managers=(AUTOPILOT.name,),
    )
    step = step_for(one)
    assert step.removes == (f"field manager {AUTOPILOT.name}", f"annotation {CREATED}")
    assert step.keeps == (f"annotation {PAUSED}", f"label {MANAGED_BY}")


def test_steps_begin_with_policies_and_end_with_crds() -> None:
    objects = (
        FoundObject(OURS, Part.CRD),
        FoundObject(ROLE, Part.INSTALLATION),
        FoundObject(RECORD, Part.RECORD),
        FoundObject(SWAP, Part.TARGET, managers=(AUTOPILOT.name,)),
        FoundObject(ROLE, Part.POLICY),
    )
    steps = decide_removal(InstallationSeen("virt-steward", objects))
    assert [step.part for step in steps] == [Part.POLICY, Part.TARGET, Part.RECORD, Part.INSTALLATION, Part.CRD]


def test_refusal_says_how_to_stop_controllers() -> None:
    assert refusal(InstallationSeen("virt-steward")) == ""
    why = refusal(InstallationSeen("ops", running=("pod-1 renews Lease ops/virt-steward-advisor",)))
    assert "pod-1 renews Lease" in why
    assert "kubectl -n ops scale deployment" in why


def an_object(*managers: str, **annotations: str) -> dict[str, object]:
    fields = {RELEASE.name: PLACEHOLDER_FIELDS}
    entries = [{"manager": one, "operation": "Apply", "fieldsV1": fields.get(one, {"f:spec": {}})} for one in managers]
    notes = {f"platform.kubevirt.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    metadata = {"name": "a", "resourceVersion": "7", "managedFields": entries, "annotations": notes}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@pytest.mark.parametrize(
    ("obj", "paths"),
    [
        pytest.param(an_object("kubectl"), [], id="of others"),
        pytest.param(an_object(RELEASE.name), [], id="released before"),
        pytest.param(an_object("kubectl", AUTOPILOT.name), ["/metadata/managedFields/1"], id="of both"),
        pytest.param(
            an_object(ADVISOR.name, "kubectl", APPROVAL.name),
            ["/metadata/managedFields/2", "/metadata/managedFields/0"],
            id="from behind",
        ),
        pytest.param(
            an_object("kubectl", created_uid="1", mode="unmanaged"),
            ["/metadata/annotations/platform.kubevirt.io~1created-uid"],
            id="a record",
        ),
    ],
)
def test_release_patch_touches_metadata_of_ours_alone(obj: dict[str, object], paths: list[str]) -> None:
    patch = release_patch(obj)
    assert [one["path"] for one in patch[1:]] == paths
    assert [one["path"] for one in patch[:1]] == (["/metadata/resourceVersion"] if paths else [])


def test_found_target_has_no_labels_of_helm() -> None:
    obj = {"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm", MANAGED_BY: MANAGER}}}
    assert found_object(SWAP, Part.TARGET, obj).labels == {MANAGED_BY: MANAGER}
    assert found_object(ROLE, Part.INSTALLATION, obj).labels == {"app.kubernetes.io/managed-by": "Helm"}


def test_release_patch_leaves_one_entry() -> None:
    [_, operation] = release_patch(an_object(AUTOPILOT.name))
    assert (operation["op"], operation["value"]["fieldsV1"]) == ("replace", PLACEHOLDER_FIELDS)
    assert found_object(SWAP, Part.TARGET, an_object(RELEASE.name)).managers == ()
