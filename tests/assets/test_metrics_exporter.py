"""The exporter's parts fit each other: its pods run under its constraints, its alerts ask for its job."""

import json
import re
from typing import Any

import pytest

from tests.assets.contexts import Cluster, rendered, rendering
from virt_steward.catalog.render import RenderFailed

EXPORTER = "kubevirt-metrics-exporter"
ALERTS = {
    "VMIStorageWriteLatencyHigh": ("10m", "warning", "> 0.1"),
    "VMIStorageReadLatencyHigh": ("10m", "warning", "> 0.1"),
    "VMIStorageFlushLatencyHigh": ("15m", "warning", "> 0.5"),
    "NodeVMStorageLatencyWidespread": ("10m", "critical", "> 0.5"),
    "VMIDiskSaturated": ("5m", "critical", "> 0.9"),
    "VMIGuestStorageLatencyHigh": ("15m", "warning", "> 0.1"),
    "PVCBlockLatencyHigh": ("10m", "warning", "> 0.1"),
    "PVCNFSLatencyHigh": ("10m", "warning", "> 0.25"),
    "KSMDCPUHigh": ("5m", "warning", "> 0.5"),
    "KhugepagedCPUHigh": ("5m", "warning", "> 0.1"),
    "KMEQMPPollStale": ("5m", "warning", "> 150"),
    "KMEQGAPollStale": ("5m", "warning", "> 150"),
    "KMEQMPScrapeErrors": ("15m", "warning", "> 0.1"),
    "KMEQGAScrapeErrors": ("15m", "warning", "> 0.1"),
    "KMEKVMPollStale": ("5m", "warning", "> 90"),
    "KMEKVMScrapeErrors": ("15m", "warning", "> 0.1"),
    "KMECgroupPollStale": ("5m", "warning", "> 90"),
    "KMECgroupScrapeErrors": ("15m", "warning", "> 0.1"),
    "KMEeBPFSubsystemDown": ("10m", "warning", "== 0"),
    "KMEAbsent": ("10m", "critical", "== 1)"),
}


def part(name: str, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    return rendered(f"{EXPORTER}-{name}", Cluster(annotations or {}))


def the_pod(annotations: dict[str, str] | None = None) -> dict[str, Any]:
    return dict(part("daemonset", annotations)["spec"]["template"]["spec"])


def env(annotations: dict[str, str] | None = None) -> dict[str, Any]:
    [container] = the_pod(annotations)["containers"]
    return {one["name"]: one.get("value") for one in container["env"]}


def rules() -> list[dict[str, Any]]:
    return [rule for group in part("alerts")["spec"]["groups"] for rule in group["rules"]]


def test_the_pods_do_no_more_than_their_constraints_allow() -> None:
    pod, constraints = the_pod(), part("scc")
    [container] = pod["containers"]
    security = container["securityContext"]
    assert set(security["capabilities"]["add"]) == set(constraints["allowedCapabilities"])
    assert security["capabilities"]["drop"] == constraints["requiredDropCapabilities"]
    assert pod["hostPID"] is constraints["allowHostPID"] is True
    assert {kind for volume in pod["volumes"] for kind in volume if kind != "name"} <= set(constraints["volumes"])
    assert security["readOnlyRootFilesystem"] is constraints["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize("name", ["role", "scc-role"])
def test_the_pods_account_is_bound_to_its(name: str) -> None:
    role, binding, account = part(name), part(f"{name}-binding"), part("account")["metadata"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    ]
    assert the_pod()["serviceAccountName"] == account["name"]


def test_the_right_to_use_constraints_is_for_the_exporters_alone() -> None:
    assert [rule["resourceNames"] for rule in part("scc-role")["rules"]] == [[part("scc")["metadata"]["name"]]]


def test_the_image_is_that_of_the_installation() -> None:
    assert [one["image"] for one in the_pod()["containers"]] == [f"registry.example/{EXPORTER}:1"]


def test_an_annotation_changes_and_adds_settings() -> None:
    asked = {"QMP_POLL_INTERVAL": "2m", "ENABLE_QGA": False, "LOG_LEVEL": "debug", "QMP_CONCURRENCY": 4}
    changed = env({f"{EXPORTER}-env": json.dumps(asked)})
    assert changed == env() | {
        "QMP_POLL_INTERVAL": "2m",
        "ENABLE_QGA": "false",
        "LOG_LEVEL": "debug",
        "QMP_CONCURRENCY": "4",
    }


def test_an_annotation_does_not_change_on_which_node_a_pod_believes_to_be() -> None:
    [container] = the_pod({f"{EXPORTER}-env": '{"NODE_NAME": "another"}'})["containers"]
    [told] = [one for one in container["env"] if one["name"] == "NODE_NAME"]
    assert told["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}


@pytest.mark.parametrize("text", ["{", "[1]", "just text"])
def test_an_annotation_that_is_no_object_is_a_failure_and_not_ignored(text: str) -> None:
    assert isinstance(rendering(f"{EXPORTER}-daemonset", Cluster({f"{EXPORTER}-env": text})), RenderFailed)


def test_the_alerts_ask_for_the_job_that_the_monitor_makes() -> None:
    monitor, labels = part("servicemonitor")["spec"], part("service")["metadata"]["labels"]
    [asked] = {job for rule in rules() for job in re.findall(r'job="([^"]+)"', rule["expr"])}
    assert asked == labels[monitor["jobLabel"]]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()


def test_metrics_are_read_over_tls_under_the_name_in_the_certificate() -> None:
    service, monitor, pod = part("service"), part("servicemonitor")["spec"], the_pod()
    [port], [endpoint], [container] = service["spec"]["ports"], monitor["endpoints"], pod["containers"]
    [listens] = container["ports"]
    assert (port["port"], listens["containerPort"], env()["LISTEN_ADDRESS"]) == (8443, 8443, ":8443")
    assert port["name"] == endpoint["port"] == port["targetPort"] == listens["name"] == "https"
    assert service["spec"]["clusterIP"] == "None"
    pods = part("daemonset")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= pods.items()
    names = {key: service["metadata"][key] for key in ("name", "namespace")}
    assert endpoint["tlsConfig"] == {"serverName": f"{names['name']}.{names['namespace']}.svc"}
    assert (endpoint["scheme"], monitor["scrapeClass"]) == ("https", "tls-client-certificate-auth")
    [secret] = service["metadata"]["annotations"].values()
    [folder] = [one["mountPath"] for one in container["volumeMounts"] if one["name"] == "tls"]
    assert [one["secret"]["secretName"] for one in pod["volumes"] if one["name"] == "tls"] == [secret]
    assert {env()["TLS_CERT_FILE"], env()["TLS_KEY_FILE"]} == {f"{folder}/tls.crt", f"{folder}/tls.key"}
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe]["tcpSocket"] == {"port": "https"}


def a_profile(type_: str, version: str = "", *ciphers: str) -> dict[str, Any]:
    return {"type": type_, **({"custom": {"minTLSVersion": version, "ciphers": [*ciphers]}} if version else {})}


@pytest.mark.parametrize(
    ("of_hco", "of_apiserver", "version", "cipher"),
    [
        pytest.param(None, None, "VersionTLS12", None, id="neither"),
        pytest.param(None, a_profile("Modern"), "VersionTLS13", None, id="of-the-api-server"),
        pytest.param(
            a_profile("Old"),
            a_profile("Modern"),
            "VersionTLS10",
            "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
            id="of-the-hyperconverged-first",
        ),
        pytest.param(
            a_profile("Custom", "VersionTLS11", "ECDHE-RSA-AES128-GCM-SHA256"),
            None,
            "VersionTLS11",
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            id="custom",
        ),
        pytest.param(
            a_profile("Custom"),
            None,
            "VersionTLS12",
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            id="custom-without-a-version",
        ),
    ],
)
def test_tls_of_the_exporter_follows_the_profile(
    of_hco: Any, of_apiserver: Any, version: str, cipher: str | None
) -> None:
    objects = {"cluster": {"spec": {"tlsSecurityProfile": of_apiserver}}}
    made = rendered(
        f"{EXPORTER}-daemonset", Cluster(spec={"security": {"tlsSecurityProfile": of_hco}}, objects=objects)
    )
    [container] = made["spec"]["template"]["spec"]["containers"]
    settings = {one["name"]: one.get("value") for one in container["env"]}
    assert settings["TLS_MIN_VERSION"] == version
    assert settings.get("TLS_CIPHER_SUITES", "None").split(",")[-1] == str(cipher)


def test_every_alert_is_as_patient_as_urgent_and_as_sensitive_as_its_table_says() -> None:
    told = {rule["alert"]: (rule["for"], rule["labels"]["severity"], rule["expr"].strip()) for rule in rules()}
    assert told.keys() == ALERTS.keys()
    assert {name: (patience, severity) for name, (patience, severity, _) in told.items()} == {
        name: (patience, severity) for name, (patience, severity, _) in ALERTS.items()
    }
    assert not [name for name, (_, _, expr) in told.items() if not expr.endswith(ALERTS[name][2])]
