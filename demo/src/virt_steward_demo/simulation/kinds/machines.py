"""Machine of vitistack, whose conditions are a list with one owner."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import condition, listed, mapping, number, record, text
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
                    cpu=record(cores=number(least=1, most=256)),
                    instanceType=text(),
                    memory=number(least=0),
                    name=text(),
                    providerConfig=record(config=mapping(text()), name=text(), region=text(), zone=text()),
                    tags=mapping(text()),
                ),
                record(conditions=listed(condition()), message=text(), phase=text(), provider=text(), state=text()),
                columns=(("Phase", ".status.phase"), ("Provider", ".status.provider")),
            ),
        ),
        ("m",),
    ),
)
