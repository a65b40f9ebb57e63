"""Machine of vitistack, whose conditions are an atomic list."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import condition, integer, mapping, plain_list, record, string
from virt_steward_demo.simulation.stubs import Stub, StubVersion

MACHINE = Kind("vitistack.io", "Machine", "machines")

STUBS = (
    Stub(
        MACHINE,
        "Namespaced",
        (
            StubVersion(
                "v1alpha1",
                record(
                    cpu=record(cores=integer(least=1, most=256)),
                    instanceType=string(),
                    memory=integer(least=0),
                    name=string(),
                    providerConfig=record(config=mapping(string()), name=string(), region=string(), zone=string()),
                    tags=mapping(string()),
                ),
                record(
                    conditions=plain_list(condition()),
                    message=string(),
                    phase=string(),
                    provider=string(),
                    state=string(),
                ),
                columns=(("Phase", ".status.phase"), ("Provider", ".status.provider")),
            ),
        ),
        ("m",),
    ),
)
