"""Carries out the commands that we tell people to type, as kubectl would, which need not be on this machine."""

import json
import re
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator

from virt_steward.kube.client import Client, Object
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
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
    ref = await _object(client, asked)
    patch = asked.patch if asked.verb == "patch" else await _labels(client, ref, asked)
    return await client.merge_patch(ref, patch, manager=f"{PROGRAM}-{asked.verb}")


async def _object(client: Client, asked: Namespace) -> Ref:
    return Ref(await _kind_of(client, asked.resource), Key(asked.namespace, asked.name))


def _read(command: list[str]) -> Namespace:
    parser = ArgumentParser(PROGRAM)
    parser.add_argument("-n", dest="namespace", default="default")
    verbs = parser.add_subparsers(dest="verb", required=True)
    patch, label = verbs.add_parser("patch"), verbs.add_parser("label")
    for verb in (patch, label):
        verb.add_argument("resource")
        verb.add_argument("name")
    patch.add_argument("--type", choices=["merge"], required=True)
    patch.add_argument("-p", dest="patch", type=json.loads, required=True)
    label.add_argument("labels", nargs="+")
    label.add_argument("--overwrite", action="store_true")
    return parser.parse_args(command[1:])


async def _labels(client: Client, ref: Ref, asked: Namespace) -> Object:
    wanted = dict(one.split("=", 1) for one in asked.labels)
    has = (await client.get(ref))["metadata"].get("labels", {})
    assert asked.overwrite or not has.keys() & wanted.keys(), "kubectl overwrites no label unasked"
    return {"metadata": {"labels": wanted}}


async def _kind_of(client: Client, resource: str) -> Kind:
    """Named in the singular or the plural, with or without its group."""
    found = [kind async for names, kind in _served(client) if resource in names]
    assert len(found) == 1, f"{resource} may mean {found}"
    return found[0]


async def _served(client: Client) -> AsyncIterator[tuple[set[str], Kind]]:
    for one in json.loads(await client.raw("/api/v1"))["resources"]:
        yield {one["name"], one["singularName"]}, Kind("", one["kind"], one["name"])
    for definition in await client.list(CUSTOM_RESOURCE_DEFINITION):
        group, names = definition["spec"]["group"], definition["spec"]["names"]
        short = {names["plural"], names["singular"], *names.get("shortNames", ())}
        yield short | {f"{name}.{group}" for name in short}, Kind(group, names["kind"], names["plural"])
