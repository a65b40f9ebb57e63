"""What the Go operators leave on a cluster, recorded (`tests/switchover`): objects with statuses and managedFields."""

from pathlib import Path

import yaml

from virt_steward.kube.client import Client, Object
from virt_steward.kube.errors import AlreadyExists
from virt_steward.objects.identity import ref_of

FOLDER = Path(__file__).parent / "switchover"
_SET_BY_SERVER = ("managedFields", "generation")


def recording(name: str, *, namespace: tuple[str, str] = ("", "")) -> list[Object]:
    """The objects of `tests/switchover/<name>.yaml`; a recorded namespace can be replaced by another."""
    text = (FOLDER / f"{name}.yaml").read_text()
    return list(yaml.safe_load_all(text.replace(*namespace) if namespace[0] else text))


async def restore(client: Client, objects: list[Object]) -> None:
    """Create the objects, or change existing ones, so that statuses and managedFields are as recorded.

    The kinds must be served in the recorded versions. A generation cannot be restored, so a status that was of the
    recorded one is of the one that the server gives.
    """
    for obj in objects:
        await _restore(client, obj)


async def _restore(client: Client, obj: Object) -> None:
    ref, recorded = ref_of(obj), obj["metadata"]
    metadata = {name: value for name, value in recorded.items() if name not in _SET_BY_SERVER}
    content = {name: value for name, value in obj.items() if name not in ("metadata", "status")}
    try:
        live = await client.create({**content, "metadata": metadata})
    except AlreadyExists:
        operations = [{"op": "add", "path": f"/{name}", "value": value} for name, value in content.items()]
        notes = [(name, metadata[name]) for name in ("annotations", "labels") if name in metadata]
        operations += [{"op": "add", "path": f"/metadata/{name}", "value": value} for name, value in notes]
        live = await client.json_patch(ref, operations)
    status = dict(obj.get("status", {}))
    if "generation" in recorded and status.get("observedGeneration") == recorded["generation"]:
        status["observedGeneration"] = live["metadata"]["generation"]
    if status:
        await client.json_patch(ref, [{"op": "add", "path": "/status", "value": status}], subresource="status")
    # Without other changes this assigns every field to whom it was assigned in the recording.
    fields = {"op": "add", "path": "/metadata/managedFields", "value": recorded["managedFields"]}
    await client.json_patch(ref, [fields])
