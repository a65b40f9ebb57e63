"""A real control plane on this machine: etcd, kube-apiserver and kube-controller-manager."""

import os
import socket
import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from virt_steward_demo.local import LocalError, layout, programs
from virt_steward_demo.local.binaries import Binaries
from virt_steward_demo.local.certificates import Authority
from virt_steward_demo.local.processes import Child

START_SECONDS = 60
POLL_SECONDS = 0.05
PROBE_TIMEOUT_SECONDS = 2
ETCD_GRACE_SECONDS = 5
MEMORY_FOR_CPU = {"GOGC": "400", "GOMEMLIMIT": "800MiB"}
"""Go collects garbage less often, which saves a tenth of the CPU of a test run, and bounds the memory."""
READY = "/readyz"
DEFAULT_SERVICE_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


class ReservedPort:
    """A loopback port that no other process can take while this object holds it.

    A socket that never listens keeps the port bound, so that a server can be killed and restarted on it. The server
    shares the port (SO_REUSEPORT), which the kernel allows to the same user only. While the server is down,
    connections are refused.
    """

    def __init__(self) -> None:
        self._holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._holder.bind(("127.0.0.1", 0))
        self.number: int = self._holder.getsockname()[1]

    def release(self) -> None:
        self._holder.close()


@dataclass(frozen=True, slots=True)
class HttpProbe:
    """Asks an API server that is starting for a path, over verified TLS and with a bearer token."""

    port: int
    trust: ssl.SSLContext
    token: str = field(repr=False)

    def succeeds(self, path: str) -> bool:
        request = f"GET {path} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\n\r\n"
        try:
            with (
                socket.create_connection(("127.0.0.1", self.port), PROBE_TIMEOUT_SECONDS) as plain,
                self.trust.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
            ):
                connection.sendall(request.encode())
                status_line = connection.makefile("rb").readline()
        except OSError:  # refused, reset or timed out: not ready yet
            return False
        return b" 200 " in status_line


class ControlPlane:
    """Three programs that never outlive this process. A stopped control plane cannot be started again.

    All methods block. Call those that start programs from the main thread, `wait_until_ready` from any thread.
    """

    def __init__(self, binaries: Binaries, folder: Path, data: Path | None = None) -> None:
        self._binaries = binaries
        self._layout = layout.Layout(folder, data or folder / "data")
        self._etcd_port, self._port = ReservedPort(), ReservedPort()
        self._children: dict[str, Child] = {}
        self.authority = Authority("virt-steward-local")
        self.server = f"https://127.0.0.1:{self._port.number}"
        layout.make_folders(self._layout)
        layout.write_certificates(self._layout, self.authority)
        self.token = layout.write_access(self._layout, self.server)
        trust = ssl.create_default_context(cadata=self.authority.certificate.decode())
        self._probe = HttpProbe(self._port.number, trust, self.token)

    @property
    def kubeconfig(self) -> Path:
        return self._layout.kubeconfig

    @property
    def data(self) -> Path:
        return self._layout.data

    @property
    def audit_log(self) -> Path:
        return self._layout.audit_log

    @property
    def port(self) -> int:
        return self._port.number

    @property
    def etcd_port(self) -> int:
        return self._etcd_port.number

    @property
    def pids(self) -> dict[str, int]:
        return {name: child.pid for name, child in self._children.items()}

    def start(self) -> None:
        """Start all programs and return when they are ready; a failed start leaves nothing running."""
        try:
            self.launch()
            self.wait_until_ready()
            # It exits if the API server takes longer than ten seconds to answer, so it starts last.
            self._spawn("kube-controller-manager", programs.kube_controller_manager(self._layout))
            self._wait_for(DEFAULT_SERVICE_ACCOUNT)
        except BaseException:
            self.stop()
            raise

    def launch(self) -> None:
        """Start etcd and the API server only, and do not wait for them."""
        self.start_etcd()
        self.start_apiserver()

    def stop(self) -> None:
        for child in reversed(self._children.values()):
            if child.name == "etcd":  # the only one with data to flush
                child.stop(ETCD_GRACE_SECONDS)
            else:
                child.kill()
        self._children.clear()
        self._etcd_port.release()
        self._port.release()

    def freeze(self) -> None:
        """Stop the API server with SIGSTOP; its connections stay open."""
        self._children["kube-apiserver"].freeze()

    def thaw(self) -> None:
        self._children["kube-apiserver"].thaw()

    def kill_apiserver(self) -> None:
        self._children["kube-apiserver"].kill()

    def start_apiserver(self) -> None:
        """Start the API server, also after a kill, on the same address and with the same credentials; do not wait."""
        self._spawn("kube-apiserver", programs.kube_apiserver(self._layout, self.port, self.etcd_port))

    def kill_etcd(self) -> None:
        self._children["etcd"].kill()

    def start_etcd(self) -> None:
        """Start etcd, also after a kill, on the same address and with the same data; do not wait."""
        self._spawn("etcd", programs.etcd(self._layout, self.etcd_port))

    def wait_until_ready(self) -> None:
        self._wait_for(READY)

    def check(self) -> None:
        """Raise if a program has exited."""
        for child in self._children.values():
            if not child.alive:
                raise LocalError(f"{child.name} has exited: {child.last_output()}; see {child.log}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _spawn(self, program: str, flags: list[str]) -> None:
        argv = [str(self._binaries.program(program)), *flags]
        self._children[program] = Child(argv, log=self._layout.log(program), env={**MEMORY_FOR_CPU, **os.environ})

    def _wait_for(self, path: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._probe.succeeds(path):
            self.check()
            if time.monotonic() > deadline:
                raise LocalError(f"GET {path} timed out after {START_SECONDS} s; see {self._layout.folder}/*.log")
            time.sleep(POLL_SECONDS)
