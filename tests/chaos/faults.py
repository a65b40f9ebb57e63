"""Which faults there are, when a seed has them, and how a list of them is kept in a file."""

import random
from pathlib import Path

import msgspec

CONTROLLERS = ("advisor", "autopilot", "approver", "placement")
REPLICAS = ("a", "b")
MEMBERS = ("east", "west")
LASTS = 8.0
"""Seconds in which work is given and faults happen."""
LONGEST_STALL = 2.5


class Fault(msgspec.Struct, frozen=True, order=True):
    """A fault begins at a second and lasts for some; what `amount` means depends on its kind."""

    at: float
    kind: str
    target: str = ""
    seconds: float = 0.0
    amount: int = 0

    def __str__(self) -> str:
        what = " ".join(str(part) for part in (self.kind, self.target, self.amount or "") if part)
        return f"{self.at:.2f} s: {what}" + (f" for {self.seconds:.2f} s" if self.seconds else "")


class FaultList(msgspec.Struct, frozen=True):
    """A seed, whose workload it is, and the faults beside it."""

    seed: int
    faults: tuple[Fault, ...]

    def save(self, path: Path) -> Path:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self)))
        return path

    @classmethod
    def load(cls, path: Path) -> "FaultList":
        return msgspec.json.decode(path.read_bytes(), type=cls)


ON_REPLICAS = {
    "latency": (0.5, 3.0),  # each request waits, up to `amount` milliseconds
    "lost-answers": (0.0, 0.0),  # `amount` writes are executed, and the connection is reset before the answer
    "resets": (0.0, 0.0),  # all connections are closed
    "errors": (0.0, 0.0),  # `amount` requests get 409, 429, 500 or 503
    "gone": (0.0, 0.0),  # `amount` watches get 410
    "truncated": (0.0, 0.0),  # `amount` watches end in the middle of an event
    "duplicated": (1.0, 3.0),  # each event comes twice
    "stalled": (0.5, LONGEST_STALL),  # watches deliver nothing, and then everything
    "unobserved": (0.5, LONGEST_STALL),  # watches deliver nothing, and then only the last state of each object
    "stale": (0.5, LONGEST_STALL),  # a restart, and lists as they were `amount` writes ago; watches stall meanwhile
    "unleased": (5.0, 8.0),  # it reaches everything but its Lease
    "kill": (0.2, 3.0),  # SIGKILL, and another start
    "stop": (0.5, 6.0),  # SIGSTOP, also for longer than a lease
    "clock": (0.5, 4.0),  # the wall clock is off by `amount` seconds
}
ON_MEMBERS = {"silent": (1.0, 6.0), "refused": (1.0, 6.0), "hostile": (1.0, 6.0)}
ON_THE_CLUSTER = {
    "apiserver-stop": (0.3, 2.0),
    "apiserver-kill": (0.1, 1.0),
    "etcd-stop": (0.3, 2.0),
    "etcd-kill": (0.1, 0.5),
    "compaction": (0.0, 0.0),
    "crd-vanishes": (0.5, 3.0),
    "crd-changes": (0.0, 0.0),
}
AMOUNTS = {
    "latency": (50, 400),
    "lost-answers": (1, 3),
    "errors": (1, 8),
    "gone": (1, 10),
    "truncated": (1, 10),
    "stale": (1, 40),
    "clock": (-7200, 7200),
}
CRDS = ("kubedeschedulers.operator.openshift.io", "prometheusrules.monitoring.coreos.com")
EVERYBODY = "*"
DELAYS = ("stalled", "unobserved", "stale", "stop", "apiserver-stop", "apiserver-kill", "etcd-stop", "etcd-kill")
RECONNECT = 1.0
"""Seconds in which a watch is open again."""


def faults_of(seed: int) -> tuple[Fault, ...]:
    rng = random.Random(f"faults {seed}")
    groups = (ON_REPLICAS, ON_REPLICAS, ON_REPLICAS, ON_MEMBERS, ON_THE_CLUSTER)
    return tuple(sorted(_fault(rng, rng.choice(groups)) for _ in range(rng.randint(3, 8))))


def _fault(rng: random.Random, group: dict[str, tuple[float, float]]) -> Fault:
    kind = rng.choice(sorted(group))
    at, seconds = round(rng.uniform(0.0, LASTS), 2), round(rng.uniform(*group[kind]), 2)
    amount = rng.randint(*AMOUNTS[kind]) if kind in AMOUNTS else 0
    return Fault(at, kind, _target(rng, kind, group), seconds, amount)


def _target(rng: random.Random, kind: str, group: dict[str, tuple[float, float]]) -> str:
    if group is ON_MEMBERS:
        return rng.choice(MEMBERS)
    if group is ON_THE_CLUSTER:
        return rng.choice(CRDS) if kind.startswith("crd-") else ""
    controller = rng.choice((*CONTROLLERS, EVERYBODY))
    replica = rng.choice((*REPLICAS, EVERYBODY))
    return f"{replica}-{controller}"


def staleness(faults: tuple[Fault, ...]) -> float:
    """By how many seconds these faults may delay what a controller sees, before it writes."""
    return max((fault.seconds if fault.kind in DELAYS else RECONNECT for fault in faults), default=0.0)


def matches(target: str, account: str) -> bool:
    """Whether the target `a-advisor`, `*-advisor`, `a-*` or `*-*` means an account."""
    pairs = zip(target.split("-"), account.split("-"), strict=True)
    return all(wanted in (EVERYBODY, name) for wanted, name in pairs)
