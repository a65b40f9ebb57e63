"""A real control plane on this machine: etcd, kube-apiserver and kube-controller-manager."""

import ssl
import time
from pathlib import Path
from typing import Self

from virt_steward_demo.local import layout, programs
from virt_steward_demo.local.binaries import Binaries
from virt_steward_demo.local.certificates import Authority
from virt_steward_demo.local.errors import LocalError
from virt_steward_demo.local.ports import ReservedPort
from virt_steward_demo.local.probe import Probe
from virt_steward_demo.local.processes import Child

START_SECONDS = 60
POLL_SECONDS = 0.05
ETCD_GRACE_SECONDS = 5
READY = "/readyz"
CONTROLLERS_WORK = "/api/v1/namespaces/default/serviceaccounts/default"


class ControlPlane:
    """Three programs that live as long as this object's process, at the longest. Once stopped, it stays so.

    All methods block; those that start programs are for the main thread, `wait_until_ready` is for any.
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
        self._probe = Probe(self._port.number, trust, self.token)

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
        """Start everything and return when it works; on failure leave nothing running."""
        try:
            self.launch()
            self.wait_until_ready()
            # It gives up on an API server that takes longer than ten seconds, so it comes last.
            self._spawn("kube-controller-manager", programs.kube_controller_manager(self._layout))
            self._wait_for(CONTROLLERS_WORK)
        except BaseException:
            self.stop()
            raise

    def launch(self) -> None:
        """Start etcd and the API server alone, and do not wait for them."""
        self._spawn("etcd", programs.etcd(self._layout, self.etcd_port))
        self.start_apiserver()

    def stop(self) -> None:
        for child in reversed(self._children.values()):
            if child.name == "etcd":  # the only one that keeps anything
                child.stop(ETCD_GRACE_SECONDS)
            else:
                child.kill()
        self._children.clear()
        self._etcd_port.release()
        self._port.release()

    def freeze(self) -> None:
        """Let the API server do nothing; its connections stay open."""
        self._children["kube-apiserver"].freeze()

    def thaw(self) -> None:
        self._children["kube-apiserver"].thaw()

    def kill_apiserver(self) -> None:
        self._children["kube-apiserver"].kill()

    def start_apiserver(self) -> None:
        """Start it, at first or after a kill, on the same address and with the same credentials; do not wait."""
        self._spawn("kube-apiserver", programs.kube_apiserver(self._layout, self.port, self.etcd_port))

    def wait_until_ready(self) -> None:
        self._wait_for(READY)

    def check(self) -> None:
        """Raise if a program has ended by itself."""
        for child in self._children.values():
            if not child.alive:
                raise LocalError(f"{child.name} has ended, see {child.log}: {child.last_words()}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _spawn(self, program: str, flags: list[str]) -> None:
        argv = [str(self._binaries.program(program)), *flags]
        self._children[program] = Child(argv, log=self._layout.log(program))

    def _wait_for(self, path: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._probe.succeeds(path):
            self.check()
            if time.monotonic() > deadline:
                raise LocalError(f"no answer to {path} after {START_SECONDS} s, see {self._layout.folder}/*.log")
            time.sleep(POLL_SECONDS)
