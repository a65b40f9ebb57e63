"""What other programs leave on a cluster, recorded with statuses and managedFields.

`tests/switchover` is of the Go operators, `tests/upgrade` of virt-steward 0.1.
"""

from pathlib import Path

import msgspec
import yaml

from virt_steward.kube.client import Client, Object
from virt_steward.kube.errors import AlreadyExists
from virt_steward.objects.identity import ref_of

GO = Path(__file__).parent / "switchover"
V01 = Path(__file__).parent / "upgrade"
_SET_BY_SERVER = ("managedFields", "generation", "uid")


def recording(name: str, *, namespace: tuple[str, str] = ("", ""), folder: Path = GO) -> list[Object]:
    """The objects of `<folder>/<name>.yaml`; a recorded namespace can be replaced by another."""
    text = (folder / f"{name}.yaml").read_text()
    return list(yaml.safe_load_all(text.replace(*namespace) if namespace[0] else text))


async def restore(client: Client, objects: list[Object]) -> None:
    """Create the objects, or change existing ones, so that statuses and managedFields are as recorded.

    The kinds must be served in the recorded versions. A generation is restored only where it bears on a plan; else a
    status that was of the recorded one is of the one that the server gives. A uid cannot be restored: where
    annotations and statuses have the recorded one, they get the new one.
    """
    created = [(obj, await _create(client, obj)) for obj in objects]
    uids = {obj["metadata"]["uid"]: live["metadata"]["uid"] for obj, live in created if "uid" in obj["metadata"]}
    for obj, live in created:
        await _complete(client, _translated(obj, uids), live)


async def _create(client: Client, obj: Object) -> Object:
    recorded = obj["metadata"]
    metadata = {name: value for name, value in recorded.items() if name not in _SET_BY_SERVER}
    content = {name: value for name, value in obj.items() if name not in ("metadata", "status")}
    other = {"spec": obj["spec"] | {"notify": "another"}} if _is_aged(obj) else {}
    try:
        return await client.create({**content, **other, "metadata": metadata})
    except AlreadyExists:
        operations = [{"op": "add", "path": f"/{name}", "value": value} for name, value in content.items()]
        notes = [(name, metadata[name]) for name in ("annotations", "labels") if name in metadata]
        operations += [{"op": "add", "path": f"/metadata/{name}", "value": value} for name, value in notes]
        return await client.json_patch(ref_of(obj), operations)


async def _complete(client: Client, obj: Object, live: Object) -> None:
    ref, recorded = ref_of(obj), obj["metadata"]
    status = dict(obj.get("status", {}))
    if _is_aged(obj):
        await _age(client, obj, live)
    elif "generation" in recorded and status.get("observedGeneration") == recorded["generation"]:
        status["observedGeneration"] = live["metadata"]["generation"]
    if status:
        await client.json_patch(ref, [{"op": "add", "path": "/status", "value": status}], subresource="status")
    if annotations := recorded.get("annotations"):
        await client.merge_patch(ref, {"metadata": {"annotations": annotations}})
    # Without other changes this assigns every field to whom it was assigned in the recording.
    fields = {"op": "add", "path": "/metadata/managedFields", "value": recorded["managedFields"]}
    await client.json_patch(ref, [fields])


def _is_aged(obj: Object) -> bool:
    """Whether its status speaks of earlier generations of the spec, for which plans were made."""
    return "planGeneration" in obj.get("status", {}) and obj["metadata"]["generation"] > 1


async def _age(client: Client, obj: Object, live: Object) -> None:
    """Change the spec of a VirtPlatformConfig, and at last to the recorded one, which then has its generation."""
    wanted = obj["metadata"]["generation"]
    for generation in range(live["metadata"]["generation"] + 1, wanted + 1):
        notify = {"notify": f"another-{generation}"} if generation < wanted else {}
        operation = {"op": "replace", "path": "/spec", "value": obj["spec"] | notify}
        live = await client.json_patch(ref_of(obj), [operation])
    assert live["metadata"]["generation"] == wanted


def _translated(obj: Object, uids: dict[str, str]) -> Object:
    text = msgspec.json.encode(obj).decode()
    for before, after in uids.items():
        text = text.replace(before, after)
    translated: Object = msgspec.json.decode(text)
    return translated
