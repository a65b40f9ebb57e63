"""The command lines of etcd, kube-apiserver and kube-controller-manager."""

from virt_steward_demo.local.layout import Layout

CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "garbage-collector-controller",  # owner references
    "namespace-controller",  # deletes namespaces with their objects
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
)


def etcd(layout: Layout, port: int) -> list[str]:
    address = f"https://127.0.0.1:{port}"
    peer = "https://127.0.0.1:0"  # a single member contacts no peer, so any free port works
    return [
        "--name=local",
        f"--data-dir={layout.etcd}",
        f"--listen-client-urls={address}",
        f"--advertise-client-urls={address}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=local={peer}",
        "--client-cert-auth",
        f"--trusted-ca-file={layout.certificate('etcd-ca')}",
        f"--cert-file={layout.certificate('etcd')}",
        f"--key-file={layout.key('etcd')}",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={layout.certificate('etcd-ca')}",
        f"--peer-cert-file={layout.certificate('etcd')}",
        f"--peer-key-file={layout.key('etcd')}",
        "--socket-reuse-port",
        "--unsafe-no-fsync",  # test data need not survive a power failure
        "--log-level=warn",
    ]


def kube_apiserver(layout: Layout, port: int, etcd_port: int) -> list[str]:
    return [
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        "--permit-port-sharing",
        f"--tls-cert-file={layout.certificate('kube-apiserver')}",
        f"--tls-private-key-file={layout.key('kube-apiserver')}",
        f"--etcd-servers=https://127.0.0.1:{etcd_port}",
        f"--etcd-cafile={layout.certificate('etcd-ca')}",
        f"--etcd-certfile={layout.certificate('etcd-client')}",
        f"--etcd-keyfile={layout.key('etcd-client')}",
        "--anonymous-auth=false",
        f"--token-auth-file={layout.tokens}",
        f"--client-ca-file={layout.certificate('ca')}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={layout.service_account_key}",
        f"--service-account-signing-key-file={layout.service_account_key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--endpoint-reconciler-type=none",  # a loopback address is not a valid endpoint
        f"--audit-policy-file={layout.audit_policy}",
        f"--audit-log-path={layout.audit_log}",
        "--audit-log-maxbackup=2",
        "--audit-log-mode=blocking",  # every answered request is in the log
        "--profiling=false",
    ]


def kube_controller_manager(layout: Layout) -> list[str]:
    return [
        f"--kubeconfig={layout.controller_manager_kubeconfig}",
        f"--controllers={','.join(CONTROLLERS)}",
        f"--root-ca-file={layout.certificate('ca')}",
        f"--service-account-private-key-file={layout.service_account_key}",
        "--leader-elect=false",
        "--secure-port=0",  # it serves no requests
        "--profiling=false",
    ]
