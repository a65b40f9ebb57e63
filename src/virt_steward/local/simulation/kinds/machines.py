"""Machine of vitistack, whose conditions are a list with one owner."""

from virt_steward.local.simulation.schemas import (
    condition,
    listed,
    mapping,
    number,
    record,
    text,
)
from virt_steward.local.simulation.stubs import Stub, Version
from virt_steward.objects.identity import Kind

MACHINE = Kind("vitistack.io", "Machine", "machines")

STUBS = (
    Stub(
        MACHINE,
        "Namespaced",
        (
            Version(
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
