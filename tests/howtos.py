"""Follows the pages below docs/howto: every command on them, as a person would type it."""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.cli.commands import Ended, steward
from tests.cli.kubectl import carry_out
from virt_steward.kube.client import Client, Object

FOLDER = Path(__file__).parents[1] / "docs" / "howto"


def commands_of(page: str) -> list[str]:
    """The complete commands of a page in their order: lines of its blocks, and what is set as code in its sentences."""
    text = (FOLDER / f"{page}.md").read_text().replace("\\\n", " ")
    found: list[str] = []
    for number, part in enumerate(text.split("```")):
        pattern = r"^ *((?:kubectl|virt-steward) .+)$" if number % 2 else r"`((?:kubectl|virt-steward) [^`]+)`"
        found += re.findall(pattern, part, re.MULTILINE)
    return [shlex.join(shlex.split(one, comments=True)) for one in found]


def a_deployment(namespace: str, name: str) -> Object:
    """As it is installed; nothing runs it."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "manager", "image": "example/image"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


@dataclass(slots=True)
class Follower:
    """A person who follows a page, and leaves out no command of it."""

    page: str
    client: Client
    kubeconfig: Path
    followed: list[str] = field(default_factory=list)

    @property
    def left_out(self) -> list[str]:
        return [command for command in commands_of(self.page) if command not in self.followed]

    async def kubectl(self, command: str, **names: str) -> Object:
        """Carry out `kubectl <command>`; names stand for placeholders of the page."""
        return await carry_out(self.client, self._words("kubectl", command, names))

    async def steward(self, command: str, *more: str, **names: str) -> Ended:
        """Run `virt-steward <command>`, with more arguments than the page has if they are needed in a test."""
        return await steward(*self._words("virt-steward", command, names)[1:], *more, kubeconfig=self.kubeconfig)

    async def install(self, command: str) -> list[Object]:
        """Carry out `virt-steward <command> | kubectl apply`, and return what did not exist before."""
        words = self._words("virt-steward", command, {})
        printed = await steward(*words[1 : words.index("|")], kubeconfig=self.kubeconfig)
        assert printed.code == 0, printed.stderr
        created = []
        for obj in yaml.safe_load_all(printed.stdout):
            answer = await self.client.apply(obj, manager="kubectl", force=True)
            created += [obj] if answer.created else []
        return created

    def follow(self, command: str) -> None:
        """Note that a test does what `virt-steward <command>` does."""
        self._words("virt-steward", command, {})

    def _words(self, program: str, command: str, names: dict[str, str]) -> list[str]:
        line = shlex.join(shlex.split(f"{program} {command}"))
        assert line in commands_of(self.page), f"the page does not say: {line}"
        self.followed.append(line)
        return [names.get(word, word) for word in shlex.split(line)]
