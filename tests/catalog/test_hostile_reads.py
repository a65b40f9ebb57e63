"""All shipped assets, with hostile values in every read that they declare.

What others write changes values of the rendered object, and never its structure. Otherwise the render fails with a
reason.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.catalog.builders import TEMPLATE, an_asset, an_hco_object, rendering
from tests.catalog.test_shipped import a_cluster, shipped
from virt_steward.catalog.asset import Asset
from virt_steward.catalog.context import LARGEST_READ, AssetContext
from virt_steward.catalog.render import Rendered, Renderer, RenderFailed, Rendering
from virt_steward.objects.paths import Pointer, with_value
from virt_steward.objects.schemafacts import SchemaFacts
from virt_steward.platform.hco import Hco
from virt_steward.platform.storage import Storage
from virt_steward.platform.topology import Topology

INJECTION = "1\n    authorization:\n      mode: AlwaysAllow\nspec: {evil: true}"
HOSTILE_TEXTS = (
    INJECTION,
    "&a [*a]",
    "x: {evil: true}",
    "{{ params }}{% raw %}",
    "\"'`\\",
    "--- \n# evil\n...",
    "\x00\x85\u2028\u2029\ufeff",
    "9" * 5000,
    "²",
    "x" * (LARGEST_READ + 1),
    "",
)
HOSTILE: tuple[Any, ...] = (
    *HOSTILE_TEXTS,
    None,
    True,
    -1,
    1.5,
    2**70,
    [],
    {},
    [INJECTION],
    [{"evil": INJECTION}],
    {"evil": [INJECTION]},
    [[[]]],
    [None, 1, {"rules": 1}, {"rules": [1, {"record": [INJECTION]}]}],
    [{"pciDeviceSelector": INJECTION}, {"pciDeviceSelector": 1}, {"selectors": [{"vendor": [], "product": "10"}]}],
    [{"pciDeviceSelector": f"{'f' * 5000}:1"}, {"selectors": [{"vendor": "f" * 5000, "product": "1"}]}],
    {"parallelMigrationsPerCluster": INJECTION, "parallelOutboundMigrationsPerNode": True},
)
GOOD: dict[str, Any] = {
    "/spec/deployment/nodePlacements/infra/maxPods": 250,
    "/spec/liveMigrationConfig": {"parallelMigrationsPerCluster": 9},
    "/spec/virtualization/permittedHostDevices/pciHostDevices": [{"pciDeviceSelector": "10DE:1EB8"}],
    "/spec/virtualization/permittedHostDevices/usbHostDevices": [{"selectors": [{"vendor": "1", "product": "2"}]}],
    "/spec/applicationAwareConfig/enable": True,
    "/spec/enableApplicationAwareQuota": True,
    "/data/config.yaml": "a: 1",
    "/metadata/name": "one",
    "/spec/groups": [{"rules": [{"record": "one"}]}],
    "/spec/pauseRequests": ["one"],
    "/spec/storageClassName": "fast",
    "/spec/security/tlsSecurityProfile": {"type": "Modern"},
    "/spec/tlsSecurityProfile": {"type": "Modern"},
    "platform.kubevirt.io/kubevirt-metrics-exporter-env": "A: b",
}
"""A good value of every read; of annotations that are not listed, any text is good."""
_ANNOTATION = re.compile(r"hco\.(?:annotation|is_true)\('([^']+)'")


def variants(asset: Asset, value: Any) -> Iterator[tuple[str, AssetContext]]:
    """The cluster with this value in one read after the other; GOOD as a value is the good one of each read."""
    base, reads = a_cluster(), asset.reads
    for path in reads.hco or ():
        obj = with_value(an_hco_object(), Pointer.parse(path), chosen(value, path))
        yield path, replace(base, hco=Hco.of(obj))
    for name, read in reads.objects.items():
        for path in read.paths:
            found = with_value({"metadata": {"name": name}}, Pointer.parse(path), chosen(value, path))
            yield f"{name}{path}", replace(base, objects={**{ref: {} for ref in base.objects}, read.ref: found})
    if isinstance(chosen(value, ""), str):
        yield from text_variants(asset, value)


def text_variants(asset: Asset, value: Any) -> Iterator[tuple[str, AssetContext]]:
    """The same for reads that are always text."""
    base, reads, text = a_cluster(), asset.reads, chosen(value, "")
    for key in _ANNOTATION.findall(asset.template):
        yield key, replace(base, hco=Hco.of(an_hco_object(annotations={key: chosen(value, key)})))
    if reads.storage:
        yield "storage", replace(base, storage=Storage((text,), text))
    if reads.topology:
        yield "topology", replace(base, topology=Topology(platform=text))
    for image in reads.images:
        yield image, replace(base, images={image: text})
    for read in reads.schemas.values():
        yield read.crd, replace(base, schemas={read.crd: SchemaFacts(dict.fromkeys(read.pointers, (text,)))})


def chosen(value: Any, name: str) -> Any:
    return GOOD.get(name, "some-text") if value is GOOD else value


def shape(value: Any) -> Any:
    """Keys and types; items of a list count once, for others may add to it."""
    match value:
        case dict():
            return frozenset((key, shape(held)) for key, held in value.items())
        case list():
            return frozenset(map(shape, value))
    return type(value).__name__


def outline(made: Rendering) -> Any:
    return shape(made.object) if isinstance(made, Rendered) else "nothing"


READERS = [asset for asset in shipped().assets if asset.reads.hco is not None or list(variants(asset, GOOD))]


@pytest.mark.parametrize("asset", READERS, ids=lambda asset: asset.name)
def test_hostile_read_never_changes_structure(asset: Asset) -> None:
    renderer = Renderer(shipped())
    good = [a_cluster(), *(context for _, context in variants(asset, GOOD))]
    known = {outline(made) for made in (renderer.render(asset, context) for context in good)}
    for value in HOSTILE:
        for name, context in variants(asset, value):
            made = renderer.render(asset, context)
            if isinstance(made, RenderFailed):
                assert made.why.startswith(asset.path)
                assert len(made.why) < 600, (name, made.why[:600])
            else:
                assert outline(made) in known, (name, repr(value)[:200], made)


def test_every_declared_read_has_good_value() -> None:
    """A good value that makes a render fail, or a read without one, would leave the test above without a measure."""
    for asset in shipped().assets:
        assert {path for path in asset.reads.hco or () if path not in GOOD} == set(), asset.name
        for name, context in variants(asset, GOOD):
            made = Renderer(shipped()).render(asset, context)
            assert not isinstance(made, RenderFailed), (asset.name, name, made)


def test_max_pods_with_newlines_fails_with_reason() -> None:
    asset = shipped().find("kubelet-perf-settings")
    assert asset
    path = "/spec/deployment/nodePlacements/infra/maxPods"
    context = replace(a_cluster(), hco=Hco.of(with_value(an_hco_object(), Pointer.parse(path), INJECTION)))
    assert Renderer(shipped()).render(asset, context) == RenderFailed(
        "kubelet/kubelet-perf-settings/object.yaml.j2 line 2: an integer is needed here, not text"
    )


@pytest.mark.parametrize(
    "expression",
    [
        "params.a",
        "params.a | safe",
        "params.a | tojson",
        "params.a | text ~ ''",
        "params.a | text | trim",
        "params.n",
        "none",
        "'constant'",
        "[params.a]",
    ],
)
def test_template_refuses_value_without_typed_filter(expression: str) -> None:
    made = rendering(an_asset(f"{TEMPLATE}spec: {{{{ {expression} }}}}\n", params={"a": "x", "n": 1}))
    assert isinstance(made, RenderFailed)
    assert "without a typed filter: end the expression with | text or" in made.why
