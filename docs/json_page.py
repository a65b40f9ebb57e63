"""The page of `-o json`, and the schema of each command."""  # noqa: INP001 - part of a script

from typing import Any, get_args

import msgspec
from tables import NOTICE, table

from virt_steward.cli.documents import DOCUMENTS
from virt_steward_demo.cli.local import DOCUMENTS as LOCAL_DOCUMENTS

ANSWERS = {**DOCUMENTS, **LOCAL_DOCUMENTS}
INTRODUCTION = """# JSON

`-o json` prints one document, as the schema of the command says ([JSON Schema](https://json-schema.org) 2020-12).
Names are in camelCase, numbers are numbers, times are RFC 3339 in UTC. Fields may be added in any release; none is
renamed or removed without a line in the [list of changes](../../CHANGELOG.md). Errors are a line on stderr, also with
`-o json`; the [exit code](exit-codes.md) says what happened.

Parts that are those of an object of ours, such as the items of a plan, omit what is empty, as the API server does.

"""


def json_page() -> str:
    rows = (
        (f"`virt-steward {command}`", f"[schema]({_file(command)})", _top_level(answer))
        for command, answer in ANSWERS.items()
    )
    return f"{NOTICE}{INTRODUCTION}{table(('command', 'schema', 'fields'), rows)}"


def schemas() -> dict[str, str]:
    """The text of each file."""
    return {_file(command): _schema(command, answer) for command, answer in ANSWERS.items()}


def _top_level(answer: Any) -> str:
    """The names at the top of a document."""
    [schema], definitions = msgspec.json.schema_components([answer])
    if schema.get("type") == "array":
        return f"a list of {_top_level(get_args(answer)[0])}"
    named = definitions.values() if "anyOf" in schema else [definitions[schema["$ref"].rpartition("/")[2]]]
    return ", ".join(dict.fromkeys(f"`{name}`" for one in named for name in one["properties"]))


def _file(command: str) -> str:
    return f"schemas/{command.replace(' ', '-')}.json"


def _schema(command: str, answer: Any) -> str:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"virt-steward {command} -o json"}
    schema = msgspec.json.encode(head | msgspec.json.schema(answer), order="deterministic")
    return msgspec.json.format(schema, indent=2).decode() + "\n"
