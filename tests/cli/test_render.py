import json
from pathlib import Path

import pytest
import yaml

from tests.catalog.builders import a_node, an_hco_object, documents_of
from tests.cli.commands import Ended, steward

ON = {"platform.kubevirt.io/autopilot": "true"}


async def rendered(folder: Path, *arguments: str, file: str | None = None, **annotations: str) -> Ended:
    hco = folder / "hco.yaml"
    keys = {f"platform.kubevirt.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    hco.write_text(documents_of(an_hco_object(annotations=ON | keys), a_node()) if file is None else file)
    return await steward("render", f"--hco-file={hco}", *arguments, kubeconfig=folder / "none")


async def test_render_prints_manifests(tmp_path: Path) -> None:
    ended = await rendered(tmp_path)
    names = {document["metadata"]["name"] for document in yaml.safe_load_all(ended.stdout)}
    assert (ended.code, ended.stderr) == (0, "")
    assert {"kubevirt-hyperconverged", "99-openshift-machineconfig-worker-psi-karg"} <= names


async def test_render_prints_one_asset(tmp_path: Path) -> None:
    ended = await rendered(tmp_path, "--asset=psi-enable", "--output=json")
    (record,) = json.loads(ended.stdout)
    assert (record["asset"], record["status"], record["component"]) == ("psi-enable", "INCLUDED", "MachineConfig")
    assert record["object"]["spec"]["kernelArguments"] == ["psi=1"]


async def test_render_lists_excluded_assets_on_request(tmp_path: Path) -> None:
    asked = ("--asset=metallb-operator", "--output=json")
    silent, told = await rendered(tmp_path, *asked), await rendered(tmp_path, *asked, "--show-excluded")
    assert json.loads(silent.stdout) == []
    assert silent.stderr == (
        "metallb-operator is not applied: Conditions not met (platform.kubevirt.io/enable-metallb: expected=true, "
        "actual=absent). Add --show-excluded to see it in the output.\n"
    )
    assert told.stderr == ""
    (record,) = json.loads(told.stdout)
    assert record["reason"] == "Conditions not met"
    assert record["details"] == {"platform.kubevirt.io/enable-metallb": "expected=true, actual=absent"}


async def test_render_honours_allow_list(tmp_path: Path) -> None:
    ended = await rendered(tmp_path, "--output=status", autopilot="psi-enable")
    included = [line.split()[0] for line in ended.stdout.splitlines() if " INCLUDED " in line]
    assert included == ["psi-enable"]
    assert "Summary: 1 included, 0 excluded, " in ended.stdout


async def test_render_names_opt_in_keys_under_an_allow_list(tmp_path: Path) -> None:
    ended = await rendered(tmp_path, "--show-excluded", "--output=json", autopilot="psi-enable")
    records = {one["asset"]: one for one in json.loads(ended.stdout)}
    assert records["metallb-operator"]["reason"] == "Not in the allow-list"
    assert records["metallb-operator"]["details"] == {"opt-in": "platform.kubevirt.io/enable-metallb=true"}
    assert "details" not in records["hco-golden-config"]  # it is always on
    text = (await rendered(tmp_path, "--show-excluded", autopilot="psi-enable")).stdout
    assert "# opt-in: platform.kubevirt.io/enable-metallb=true\n" in text


async def test_render_leaves_nothing_out_of_a_pipe(tmp_path: Path) -> None:
    ended = await rendered(tmp_path, "--output=status", disabled_resources="- {kind: MachineConfig, name: '*psi*'}")
    assert "Root exclusion (disabled-resources annotation)\n" in ended.stdout
    assert "…" not in ended.stdout


async def test_render_honours_exclusions(tmp_path: Path) -> None:
    rules = "- {kind: MachineConfig, name: '*psi*'}"
    asked = ("--asset=psi-enable", "--show-excluded", "--output=json")
    (record,) = json.loads((await rendered(tmp_path, *asked, disabled_resources=rules)).stdout)
    assert (record["status"], record["reason"]) == ("FILTERED", "Root exclusion (disabled-resources annotation)")


async def test_render_warns_that_autopilot_is_off(tmp_path: Path) -> None:
    ended = await rendered(tmp_path, "--asset=psi-enable", autopilot="false")
    assert "kind: MachineConfig" in ended.stdout
    assert ended.stderr.startswith("The autopilot is off: platform.kubevirt.io/autopilot is 'false'")


@pytest.mark.parametrize(
    ("arguments", "file", "said"),
    [
        pytest.param((), documents_of(a_node()), "expected one object of kind HyperConverged, got Node", id="no-hco"),
        pytest.param((), "a: [", "the file is invalid", id="no-yaml"),
        pytest.param(("--asset=gone",), None, "Asset gone not found", id="an-unknown-asset"),
        pytest.param(("--output=xml",), None, "'xml' is not one of", id="an-unknown-format"),
        pytest.param(("--hco-file=gone.yaml",), None, "Cannot read gone.yaml", id="no-file"),
    ],
)
async def test_render_reports_wrong_input_in_one_line(
    tmp_path: Path, arguments: tuple[str, ...], file: str | None, said: str
) -> None:
    ended = await rendered(tmp_path, *arguments, file=file)
    assert ended.code != 0
    assert ended.stdout == ""
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


async def test_render_refuses_invalid_exclusions(tmp_path: Path) -> None:
    ended = await rendered(tmp_path, disabled_resources="- {kind: MachineConfig}")
    assert (ended.code, ended.stdout) == (1, "")
    assert "name is required" in ended.stderr
