"""The profiles as pure functions: what they need, what they depend on, what they want."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from virt_steward.apis.profiles import (
    EXAMPLE,
    OPTIONS_OF,
    PROFILES_WITHOUT_OPTIONS,
    HigherDensityOptions,
    KsmConfiguration,
    LoadAwareOptions,
    ProfileOptions,
)
from virt_steward.apis.schema import schema_of, validations
from virt_steward.apis.virtplatformconfig import Input, VirtPlatformConfigSpec
from virt_steward.cli.profile_options import set_options
from virt_steward.console.forms import fields
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.profiles import BUILDERS, OFF_BY_DEFAULT, profiles, schemas_of
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import CRD, DESCHEDULER, PSI, profile
from virt_steward.controllers.advisor.profiles.profile import ProfileContext
from virt_steward.controllers.advisor.profiles.virt_higher_density import NO_NODE, SWAP
from virt_steward.controllers.advisor.profiles.virt_higher_density import profile as density_profile
from virt_steward.controllers.advisor.version_change import compare_versions
from virt_steward.objects.paths import Pointer
from virt_steward.objects.schemafacts import SchemaFacts
from virt_steward.plans.draft import IN_PLACE
from virt_steward.plans.intent import Intent
from virt_steward.platform.hco import Hco
from virt_steward.platform.machineconfigs import ROLE, machine_config_facts
from virt_steward.platform.pools import Pool
from virt_steward.settings import BadSetting

KNOWN = profiles(AdvisorOptions(example_profile=True))
LOAD, DENSITY = profile(AdvisorOptions()), density_profile(AdvisorOptions())
EVERYTHING = (*LOAD.schemas[CRD],)
NEWEST = SchemaFacts({**dict.fromkeys(EVERYTHING, ()), EVERYTHING[0]: ("LongLifecycle", "KubeVirtRelieveAndMigrate")})
OLDEST = SchemaFacts(
    {Pointer(("spec", "profiles")): ("LongLifecycle",), Pointer(("spec", "evictionLimits", "total")): ()}
)
WORKERS = msgspec.convert(
    {"metadata": {"name": "worker"}, "spec": {"machineConfigSelector": {"matchLabels": {ROLE: "worker"}}}}, Pool
)


def an_hco(version: str = "v1", **migration: int) -> Hco:
    part = {"liveMigrationConfig": migration}
    spec = {"virtualization": part} if version == "v1" else part
    return Hco.of({"apiVersion": f"hco.kubevirt.io/{version}", "metadata": {"name": "hco"}, "spec": spec})


def a_context(facts: SchemaFacts = NEWEST, **changes: Any) -> ProfileContext:
    context = ProfileContext(hco=an_hco(parallelMigrationsPerCluster=7), schemas={CRD: facts}, pools=(WORKERS,))
    return replace(context, **changes)


def load(**options: Any) -> ProfileOptions:
    return ProfileOptions(load_aware=LoadAwareOptions(**options))


def a_machine_config(name: str, *arguments: str, role: str = "worker") -> Any:
    spec = {"kernelArguments": arguments}
    return machine_config_facts(msgspec.json.encode({"metadata": {"name": name, "labels": {ROLE: role}}, "spec": spec}))


def descheduler(context: ProfileContext) -> dict[str, Any]:
    spec: dict[str, Any] = LOAD.intents(context)[-1].desired["spec"]
    return spec


def test_no_two_profiles_write_one_object() -> None:
    """One manager sends all that it wants of an object, so two plans on one would delete each other's fields."""
    assert not [(a.name, b.name) for a, b in combinations(KNOWN, 2) if set(a.targets) & set(b.targets)]


def test_every_profile_is_in_the_table_the_registry_and_the_crd() -> None:
    enum = schema_of(VirtPlatformConfigSpec)["properties"]["profile"]["enum"]
    assert {one.name for one in KNOWN} == set(BUILDERS) == set(enum) == {*OPTIONS_OF, *PROFILES_WITHOUT_OPTIONS}
    assert [one.name for one in KNOWN] == list(BUILDERS)
    assert {one.attribute for one in OPTIONS_OF.values()} == set(ProfileOptions.__struct_fields__)


def test_every_profile_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "howto" / "tune-the-platform.md").read_text()
    assert [name for name in BUILDERS if name not in OFF_BY_DEFAULT and f"| `{name}` |" not in page] == []


@pytest.mark.parametrize("profile", OPTIONS_OF)
def test_options_of_every_profile_reach_rules_form_and_command_line(profile: str) -> None:
    field = OPTIONS_OF[profile]
    rules = [one["rule"] for one in validations(VirtPlatformConfigSpec.rules)]
    assert sum(f"self.profile != '{profile}'" in one for one in rules) == 1
    assert sum(f"|| self.profile == '{profile}'" in one for one in rules) == 1
    assert {one.path[0] for one in fields(profile, {})} == {field.name}
    with pytest.raises(BadSetting, match=f"such as {field.name}\\."):
        set_options(profile, ["odd"], ProfileOptions())
    assert ProfileOptions().of(field.type) == field.type()
    set_ones = ProfileOptions(**{field.attribute: field.type()})  # type: ignore[arg-type]
    assert set_ones.of(field.type) is getattr(set_ones, field.attribute)


def test_example_profile_is_off_by_default() -> None:
    assert EXAMPLE not in {one.name for one in profiles(AdvisorOptions())}
    assert EXAMPLE in OFF_BY_DEFAULT


def test_profiles_may_ask_about_fields_of_one_crd() -> None:
    other = replace(DENSITY, schemas={CRD: (EVERYTHING[0], Pointer(("spec", "mode")))})
    assert schemas_of((LOAD, other)) == {CRD: (*EVERYTHING, Pointer(("spec", "mode")))}


def test_machine_configs_are_watched_for_profiles_that_write_one() -> None:
    assert {one.name for one in KNOWN if one.uses_machine_configs} >= {LOAD.name, DENSITY.name}
    assert not replace(LOAD, targets=(DESCHEDULER,)).uses_machine_configs


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_intents_stay_within_declared_targets(known: Any) -> None:
    intents = known.intents(a_context())
    assert {intent.ref for intent in intents} <= set(known.targets)
    assert all(intent.fields for intent in intents)


def test_intents_are_in_order_of_dependency() -> None:
    assert [intent.name for intent in LOAD.intents(a_context())] == ["enable-psi-metrics", "configure-descheduler"]
    assert [intent.name for intent in DENSITY.intents(a_context())] == [
        "enable-kubelet-swap",
        "configure-higher-density",
    ]


def test_newest_descheduler_gets_all_settings() -> None:
    assert descheduler(a_context()) == {
        "managementState": "Managed",
        "mode": "Automatic",
        "deschedulingIntervalSeconds": 60,
        "profiles": ["KubeVirtRelieveAndMigrate"],
        "profileCustomizations": {
            "devActualUtilizationProfile": "PrometheusCPUCombined",
            "devDeviationThresholds": "AsymmetricLow",
            "devEnableEvictionsInBackground": True,
            "devEnableSoftTainter": True,
        },
        "evictionLimits": {"total": 7, "node": 2},
    }


def test_old_descheduler_gets_known_settings_and_warning() -> None:
    assert descheduler(a_context(OLDEST))["profiles"] == ["LongLifecycle"]
    assert "profileCustomizations" not in descheduler(a_context(OLDEST))
    assert descheduler(a_context(OLDEST))["evictionLimits"] == {"total": 7}
    assert "not load-aware" in LOAD.intents(a_context(OLDEST))[-1].message


def test_options_override_platform_defaults() -> None:
    options = load(eviction_limit_total=3, eviction_limit_node=1, mode="Predictive", dev_deviation_thresholds="High")
    spec = descheduler(a_context(options=options))
    assert spec["evictionLimits"] == {"total": 3, "node": 1}
    assert spec["mode"] == "Predictive"
    assert spec["profileCustomizations"]["devDeviationThresholds"] == "High"
    assert not [one for one in LOAD.inputs(a_context(options=options)) if one.name.startswith("parallel")]


def test_compatible_descheduler_profiles_are_kept() -> None:
    live = {"spec": {"profiles": ["SoftTopologyAndDuplicates", "LongLifecycle", "AffinityAndTaints"]}}
    assert descheduler(a_context(targets={DESCHEDULER: live}))["profiles"] == [
        "SoftTopologyAndDuplicates",
        "AffinityAndTaints",
        "KubeVirtRelieveAndMigrate",
    ]


ON, OFF = a_machine_config("50-on", "psi=1"), a_machine_config("98-off", "psi=0")


@pytest.mark.parametrize(
    ("configs", "by"),
    [
        pytest.param((a_machine_config("50-theirs", "quiet", "psi=1"),), "50-theirs", id="by-another"),
        pytest.param((a_machine_config("50-theirs", "psi=1", "psi=0"),), "", id="but-turned-off-again"),
        pytest.param((OFF, ON), "", id="but-turned-off-by-a-later-one"),
        pytest.param((OFF, ON, a_machine_config("98-on-again", "psi=1")), "98-on-again", id="by-the-last-of-several"),
        pytest.param((ON, a_machine_config("98-off", "psi=0", role="master")), "50-on", id="and-off-elsewhere"),
        pytest.param((a_machine_config("50-theirs", "psi=1", role="master"),), "", id="but-elsewhere"),
        pytest.param((a_machine_config(PSI.key.name, "psi=1"),), "", id="by-us"),
    ],
)
def test_psi_intent_is_moot_when_effective(configs: tuple[Any, ...], by: str) -> None:
    context = a_context(configs=configs)
    moot = LOAD.intents(context)[0].moot
    assert f"by MachineConfig '{by}'" in moot if by else not moot
    assert Input("MachineConfig with psi=1", by or "none") in LOAD.inputs(context)


@pytest.mark.parametrize(("name", "warns"), [("98-off", False), ("99-worker-z", True)])
def test_psi_intent_warns_of_later_machine_config(name: str, *, warns: bool) -> None:
    message = LOAD.intents(a_context(configs=(a_machine_config(name, "psi=0"),)))[0].message
    assert (f"'{name}' overrides it with psi=0" in message) == warns


def test_psi_intent_stays_once_applied() -> None:
    theirs = a_machine_config("50-theirs", "psi=1")
    context = a_context(configs=(theirs,), targets={PSI: {"spec": {}}})
    assert not LOAD.intents(context)[0].moot
    assert LOAD.inputs(context) == LOAD.inputs(replace(context, configs=()))


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        pytest.param(ProfileOptions(), ["KubeDescheduler", "MachineConfig", "HyperConverged"], id="by-default"),
        pytest.param(load(enable_psi_metrics=False), ["KubeDescheduler", "HyperConverged"], id="without-psi"),
        pytest.param(
            load(enable_psi_metrics=False, eviction_limit_node=1, eviction_limit_total=1),
            ["KubeDescheduler"],
            id="with-limits",
        ),
    ],
)
def test_prerequisites_follow_options(options: ProfileOptions, kinds: list[str]) -> None:
    assert [one.kind.name for one in LOAD.prerequisites(options)] == kinds


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_density_fields_follow_hco_version(version: str) -> None:
    selector = {"matchLabels": {"ksm": "yes"}}
    ksm = msgspec.convert({"nodeLabelSelector": selector}, KsmConfiguration)
    options = ProfileOptions(virt_higher_density=HigherDensityOptions(ksm_configuration=ksm, enable_swap=False))
    (intent,) = DENSITY.intents(a_context(hco=an_hco(version), options=options))
    part = intent.desired["spec"]["virtualization"] if version == "v1" else intent.desired["spec"]
    assert part == {
        "higherWorkloadDensity": {"memoryOvercommitPercentage": 150},
        "ksmConfiguration": {"nodeLabelSelector": selector},
    }
    assert intent.fields[-1].endswith("ksmConfiguration.nodeLabelSelector")


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize(
    ("live", "sent"),
    [
        pytest.param(None, None, id="never-said"),
        pytest.param({}, None, id="off"),
        pytest.param({"nodeLabelSelector": {}}, NO_NODE, id="on"),
        pytest.param({"nodeLabelSelector": NO_NODE}, NO_NODE, id="turned-off-by-us"),
    ],
)
def test_ksm_is_turned_off_explicitly_only_where_on(version: str, live: Any, sent: Any) -> None:
    ksm = KsmConfiguration(enabled=False)
    options = ProfileOptions(virt_higher_density=HigherDensityOptions(ksm_configuration=ksm, enable_swap=False))
    part = {"ksmConfiguration": live} if live is not None else {}
    target = {"spec": {"virtualization": part} if version == "v1" else part}
    (hco,) = (ref for ref in DENSITY.targets if ref != SWAP)
    (intent,) = DENSITY.intents(a_context(hco=an_hco(version), options=options, targets={hco: target}))
    wanted = intent.desired["spec"]["virtualization"] if version == "v1" else intent.desired["spec"]
    assert wanted.get("ksmConfiguration") == ({"nodeLabelSelector": sent} if sent else None)
    assert ("by a node selector that matches no node" in intent.message) == bool(sent)
    assert any(field.endswith("ksmConfiguration.nodeLabelSelector") for field in intent.fields) == bool(sent)


def test_swap_of_another_machine_config_is_kept() -> None:
    ours = machine_config_facts(msgspec.json.encode(DENSITY.intents(a_context())[0].desired))
    assert ours.swap
    theirs = msgspec.structs.replace(ours, metadata=msgspec.structs.replace(ours.metadata, name="80-theirs"))
    assert "80-theirs" in DENSITY.intents(a_context(configs=(theirs,)))[0].moot
    assert not DENSITY.intents(a_context(configs=(ours,)))[0].moot
    assert SWAP.key.name == ours.name


def test_advertisement_describes_profile_and_is_inactive() -> None:
    offer = LOAD.advertisement("https://docs.example")
    notes = {key.partition("/")[2]: value for key, value in offer["metadata"]["annotations"].items()}
    assert offer["spec"] == {"profile": LOAD.name, "action": "Ignore"}
    assert notes["documentation-url"] == f"https://docs.example/{LOAD.name}"
    assert "Descheduler Operator" in notes["prerequisites"]
    assert "enablePSIMetrics" in notes["options"]
    assert notes["impact-summary"].startswith("Medium")


def test_advertisement_names_no_documentation_without_a_url() -> None:
    """A link that leads nowhere is worse than none."""
    docs_url = AdvisorOptions().docs_url
    assert "documentation-url" not in str(LOAD.advertisement(docs_url)["metadata"]["annotations"])


class TestNewLogic:
    CONTEXT = a_context(options=load(enable_psi_metrics=False))

    def done(self) -> Any:
        return self.items(LOAD.intents(self.CONTEXT))

    def items(self, intents: tuple[Intent, ...]) -> Any:
        context = replace(self.CONTEXT, targets={one.ref: one.desired for one in intents})
        found = compare_versions(LOAD, context, ())
        assert found.aligned
        return found.aligned

    def test_compare_versions_ignores_drift(self) -> None:
        drifted = {DESCHEDULER: {"spec": {"profiles": ["AffinityAndTaints"]}}}
        found = compare_versions(LOAD, replace(self.CONTEXT, targets=drifted), self.done())
        assert (found.differs, found.aligned) == ((), None)

    def test_compare_versions_finds_changed_item(self) -> None:
        context = replace(self.CONTEXT, options=load(enable_psi_metrics=False, mode="Predictive"))
        assert compare_versions(LOAD, context, self.done()).differs == ("configure-descheduler",)

    def test_compare_versions_finds_added_item(self) -> None:
        assert compare_versions(LOAD, replace(self.CONTEXT, options=load()), self.done()).differs == (
            "enable-psi-metrics",
        )

    def test_compare_versions_finds_aligned_cluster(self) -> None:
        context = replace(self.CONTEXT, options=load(enable_psi_metrics=False, mode="Predictive"))
        (intent,) = LOAD.intents(context)
        found = compare_versions(LOAD, replace(context, targets={DESCHEDULER: intent.desired}), self.done())
        assert found.aligned
        assert [(one.state, one.message) for one in found.aligned] == [("Completed", IN_PLACE)]
