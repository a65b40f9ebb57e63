"""Carries out the commands that we tell people to type, as kubectl would, which need not be on this machine."""

import json
import re
import shlex
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import AsyncIterator
from contextlib import suppress

from virt_steward.kube.client import Client, Object, Selection
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, Kind, Ref

PROGRAM = "kubectl"


def commands_in(text: str) -> list[list[str]]:
    """Those that a shell would make of lines that begin with kubectl."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if re.match(rf"\s*{PROGRAM}\b", line)]


async def object_of(client: Client, command: list[str]) -> Ref:
    """Which one it names, whether or not it is there."""
    return await _object(client, _read(command))


async def carry_out(client: Client, command: list[str]) -> Object:
    """Give what the server answers. Raises NotFound if the object is not there."""
    asked = _read(command)
    if asked.verb == "get":
        kind, is_namespaced = await _kind_of(client, asked.resource)
        selection = Selection(asked.namespace if is_namespaced else "", fields=asked.fields)
        return {"items": await client.list(kind, selection)}
    ref = await _object(client, asked)
    if asked.verb == "delete":
        return await _delete(
            client, [Ref(ref.kind, Key(ref.key.namespace, name)) for name in (asked.name, *asked.more)]
        )
    return await client.merge_patch(ref, await _patch(client, ref, asked), manager=f"{PROGRAM}-{asked.verb}")


async def _patch(client: Client, ref: Ref, asked: Namespace) -> Object:
    match asked.verb:
        case "patch":
            patch: Object = asked.patch
            return patch
        case "scale":
            return {"spec": {"replicas": asked.replicas}}
        case "annotate":
            return await _notes(client, ref, asked, "annotations")
    return await _notes(client, ref, asked, "labels")


async def _object(client: Client, asked: Namespace) -> Ref:
    kind, is_namespaced = await _kind_of(client, asked.resource)
    return Ref(kind, Key(asked.namespace if is_namespaced else "", asked.name))


def _read(command: list[str]) -> Namespace:
    parser = ArgumentParser(PROGRAM)
    parser.add_argument("-n", dest="namespace", default="default")
    verbs = parser.add_subparsers(dest="verb", required=True)
    get, patch, scale, label, annotate, delete = map(
        verbs.add_parser, ("get", "patch", "scale", "label", "annotate", "delete")
    )
    for verb in (get, patch, scale, label, annotate, delete):
        verb.add_argument("-n", dest="namespace", default=SUPPRESS)
        verb.add_argument("resource")
    for verb in (patch, scale, label, annotate, delete):
        verb.add_argument("name")
    delete.add_argument("more", nargs="*")
    delete.add_argument("--ignore-not-found", action="store_true", required=True)
    get.add_argument("--field-selector", dest="fields", default="")
    scale.add_argument("--replicas", type=int, required=True)
    patch.add_argument("--type", choices=["merge"], required=True)
    patch.add_argument("-p", dest="patch", type=json.loads, required=True)
    for verb in (label, annotate):
        verb.add_argument("notes", nargs="+")
        verb.add_argument("--overwrite", action="store_true")
    return parser.parse_args(command[1:])


async def _delete(client: Client, refs: list[Ref]) -> Object:
    """Delete those that exist, and tell their names."""
    found = []
    for ref in refs:
        with suppress(NotFound):
            await client.delete(ref)
            found.append(ref.key.name)
    return {"deleted": found}


async def _notes(client: Client, ref: Ref, asked: Namespace, field: str) -> Object:
    wanted = dict(one.split("=", 1) for one in asked.notes)
    has = (await client.get(ref))["metadata"].get(field, {})
    assert asked.overwrite or not has.keys() & wanted.keys(), "kubectl overwrites none unasked"
    return {"metadata": {field: wanted}}


async def _kind_of(client: Client, resource: str) -> tuple[Kind, bool]:
    """Named in the singular or the plural, with or without its group; and whether it has namespaces."""
    found = [(kind, is_namespaced) async for names, kind, is_namespaced in _served(client) if resource in names]
    assert len(found) == 1, f"{resource} may mean {found}"
    return found[0]


async def _served(client: Client) -> AsyncIterator[tuple[set[str], Kind, bool]]:
    for path, group in (("/api/v1", ""), ("/apis/apps/v1", "apps")):
        for one in json.loads(await client.raw(path))["resources"]:
            yield {one["name"], one["singularName"]}, Kind(group, one["kind"], one["name"]), one["namespaced"]
    for definition in await client.list(CUSTOM_RESOURCE_DEFINITION):
        group, names = definition["spec"]["group"], definition["spec"]["names"]
        short = {names["plural"], names["singular"], *names.get("shortNames", ())}
        named = short | {f"{name}.{group}" for name in short}
        yield named, Kind(group, names["kind"], names["plural"]), definition["spec"]["scope"] == "Namespaced"
