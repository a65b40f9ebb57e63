"""All parsers of text and objects that others write, with inputs that try to break them.

Each gives a result or a reason, never another exception, and within a bounded time. `make stress` runs 10,000 inputs
each, the ordinary tests 100.
"""

import importlib
import json
import pkgutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import virt_steward
from tests.catalog.builders import a_crd
from tests.kube.kubeconfigs import a_kubeconfig
from virt_steward.apis.profiles import ProfileOptions
from virt_steward.catalog.context import AssetContext
from virt_steward.catalog.filters import from_yaml
from virt_steward.catalog.load import load
from virt_steward.catalog.yamlread import BadYaml
from virt_steward.cli.arguments import namespaced
from virt_steward.cli.profile_options import set_options
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.annotation_keys import DriftMode
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.overrides import exclusions, mask, scope
from virt_steward.controllers.autopilot.overrides.expiry import in_force
from virt_steward.controllers.autopilot.overrides.patch import PatchRefused, patched
from virt_steward.controllers.autopilot.watches import Watchlist
from virt_steward.kube.errors import BadConfig, error_from
from virt_steward.kube.kubeconfig import load_from_bytes
from virt_steward.kube.watch import Unreadable, projected
from virt_steward.objects import windows
from virt_steward.objects.durations import BadDuration, parse_duration
from virt_steward.objects.fieldpaths import BadFields, decode_step
from virt_steward.objects.paths import BadPointer, Pointer
from virt_steward.objects.quantities import BadQuantity, parse_quantity
from virt_steward.objects.ranges import BadRange, Range
from virt_steward.objects.schemafacts import definition_facts
from virt_steward.objects.selectors import BadSelector, parse_selector
from virt_steward.objects.versions import BadVersion, Unversioned, Version, version_of
from virt_steward.objects.windows import BadWindow, Window
from virt_steward.platform.hco import Hco
from virt_steward.runtime.informer import Source
from virt_steward.settings import BadSetting

LONGEST_REASON = 5000
"""Characters: longer ones fit into no condition and no event."""
LONGEST_TIME = 0.5
"""Seconds of CPU, with room for a slow machine."""
NOW = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
CATALOG = load()

NASTY = (
    "",
    " ",
    "\n",
    "\0",
    "²",
    "٣",
    "\ud800",
    "\u2028",
    "9" * 5000,
    "-1",
    "1e999",
    "~2",
    "../",
    "{{",
    "&a [*a]",
    "a: &a [1]\nb: [*a, *a]",
    "x" * 200_000,
    "[" * 100_000,
    "{" * 3000,
    "a," * 50_000,
    "/a" * 50_000,
    "(" * 500,
    ">=1 " * 60,
    "*/1,*/1",
)
_FIELDS_WORDS = """
matchLabels matchExpressions key operator values In Exists versions schema openAPIV3Schema properties
items enum additionalProperties x-kubernetes-preserve-unknown-fields name served storage subresources
status spec metadata annotations labels capacity allocatable cpu memory machineConfigSelector
nodeSelector paused conditions type configuration source kernelArguments config systemd units contents
files path compression featureGates state liveMigrationConfig parallelMigrationsPerCluster
permittedHostDevices pciHostDevices pciDeviceSelector usbHostDevices selectors vendor product
virtualization deployment nodePlacements infra maxPods claimPropertySets accessModes volumeMode
clusterServiceVersionNames approved approval phase bundleLookups properties plan resource manifest kind
group kubeconfigSecretRef defaultNamespace managedFields fieldsV1 f:spec f:metadata k:{} v:1 i:0 manager
operation data governed targetRef running maxUnavailable groups rules platformStatus controlPlaneTopology
mastersSchedulable template printableStatus replacesVersion
"""
FIELDS = _FIELDS_WORDS.split()
anything = st.characters(exclude_categories=())
text = st.one_of(st.text(anything, max_size=40), st.sampled_from(NASTY))
json_text = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.sampled_from([one for one in NASTY if one != "\ud800" and len(one) < 10_000]),
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | json_text
    | st.sampled_from(FIELDS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS) | json_text, inner, max_size=5),
    max_leaves=25,
)
few_values = st.none() | st.booleans() | json_text | st.lists(json_text, max_size=2) | st.just({"command": ["x"]})
short = st.dictionaries(st.sampled_from(FIELDS) | st.text("ab/.-", max_size=9), json_text, max_size=3)


@st.composite
def around(draw: st.DrawFn, *examples: str) -> str:
    """A good text with something else in it, pieces of good texts, or anything."""
    one, other, odd = draw(st.sampled_from(examples)), draw(st.sampled_from(examples)), draw(text)
    at, until = draw(st.integers(0, len(one))), draw(st.integers(0, len(other)))
    return draw(st.sampled_from((one, odd, one[:at] + odd + one[at:], one[:at] + other[until:], one * 3)))


@st.composite
def objects(draw: st.DrawFn) -> bytes:
    """Objects as an API server may deliver them: metadata has its types, the rest may be anything."""
    metadata = {
        "name": "one",
        "uid": "1",
        "resourceVersion": "1",
        "labels": draw(short),
        "annotations": draw(short | st.just({annotation_keys.GOVERNED_BY: "x"})),
        "managedFields": draw(st.lists(st.fixed_dictionaries({"manager": json_text, "operation": json_text}))),
    }
    body = draw(st.dictionaries(st.sampled_from(("spec", "status", "data", "type")), json_values, max_size=3))
    return json.dumps({"apiVersion": "a/v1", "kind": "K", "metadata": metadata, **body}).encode()


@dataclass(frozen=True)
class Parser:
    name: str
    run: Callable[[Any], object]
    """Returns a reason, several of them, or anything else if the input is good."""
    inputs: st.SearchStrategy[Any]
    refusals: tuple[type[Exception], ...] = ()


@dataclass(frozen=True)
class Reasons:
    """What a parser says that does not raise."""

    texts: tuple[str, ...]


def fuzz(parser: Parser, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(parser.inputs)
    def check(value: Any) -> None:
        found, seconds = _timed(parser, value)
        if seconds >= LONGEST_TIME:  # once may be the garbage collection of what hypothesis has made
            found, seconds = _timed(parser, value)
        assert seconds < LONGEST_TIME
        for reason in found.texts if isinstance(found, Reasons) else ():
            assert reason
            assert len(reason) < LONGEST_REASON

    check()


def _timed(parser: Parser, value: Any) -> tuple[object, float]:
    started = time.process_time()
    try:
        found = parser.run(value)
    except parser.refusals as refusal:
        found = Reasons((str(refusal),))
    return found, time.process_time() - started


def _window(three: tuple[str, str, str]) -> object:
    return windows.state([Window.parse(*three)], NOW)


def _patch(annotation: str) -> object:
    base = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {"a": [1, {"b": "c"}]}}
    done = patched(base, annotation)
    return Reasons((done.message,)) if isinstance(done, PatchRefused) else done


def _exclusions(annotation: str) -> object:
    found = exclusions.parse(annotation)
    if isinstance(found, exclusions.UnreadableExclusions):
        return Reasons((found.why,))
    return found.excludes("Service", "a", "b")


def _scope(annotation: str) -> object:
    found = scope.parse(annotation)
    return Reasons((found.why,)) if isinstance(found, scope.Idle) else found


def _overrides(values: tuple[str, str, str]) -> object:
    keys = (annotation_keys.UNTIL, annotation_keys.PATCH, annotation_keys.DRIFT)
    DriftMode.parse(values[2])
    return Reasons(tuple(remark.message for remark in in_force(dict(zip(keys, values, strict=True)), NOW).remarks))


def _csv(name: str) -> object:
    found = version_of(name)
    return Reasons((found.message,)) if isinstance(found, Unversioned) else found


def _range(pair: tuple[str, str]) -> object:
    return Version(1, 2, 3) in Range.parse(pair[0])


def _hco(spec: Any) -> object:
    metadata = {"name": "a", "namespace": "b", "annotations": {}}
    hco = Hco.of({"apiVersion": "hco.kubevirt.io/v1", "metadata": metadata, "spec": spec})
    context = AssetContext(hco)
    return hco.live_migration, [one.check(context) for asset in CATALOG.assets for one in asset.conditions]


def _schema(raw: bytes) -> object:
    return definition_facts(raw, [Pointer(("spec", "profiles")), Pointer(("spec", "a", "b"))])


@st.composite
def crds(draw: st.DrawFn) -> bytes:
    crd = a_crd()
    crd["spec"]["versions"][0]["schema"] = draw(json_values | st.fixed_dictionaries({"openAPIV3Schema": json_values}))
    if draw(st.booleans()):
        spec = {"properties": {"spec": {"properties": {"profiles": draw(json_values), "a": draw(json_values)}}}}
        crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": spec}
    return json.dumps(crd).encode()


@st.composite
def kubeconfigs(draw: st.DrawFn) -> bytes:
    user, cluster = (
        draw(st.dictionaries(st.sampled_from(KUBECONFIG_FIELDS), few_values, max_size=2)) for _ in ("user", "cluster")
    )
    good = json.dumps(a_kubeconfig(user=user, cluster=cluster))
    return draw(around(good, yaml.safe_dump(a_kubeconfig()))).encode(errors="surrogatepass")


_KUBECONFIG_FIELDS_WORDS = """
server certificate-authority-data insecure-skip-tls-verify proxy-url tls-server-name token tokenFile
username password client-certificate-data client-key-data exec as as-groups as-user-extra auth-provider
extensions
"""
KUBECONFIG_FIELDS = _KUBECONFIG_FIELDS_WORDS.split()


def _sources() -> Iterator[Source[Any]]:
    """All that controllers and console watch."""
    for module in pkgutil.walk_packages(virt_steward.__path__, "virt_steward."):
        if ".assets" in module.name or module.name.endswith("__main__"):
            continue
        yield from (value for value in vars(importlib.import_module(module.name)).values() if isinstance(value, Source))
    watchlist = Watchlist(CATALOG, HCO)
    yield watchlist.hco
    yield next(iter(watchlist.managed.values()))  # all of them have the same decoder
    yield from watchlist.objects.values()


SOURCES = tuple({source.decode: source for source in _sources()}.values())


def _objects(raw: bytes) -> object:
    """The object as one of every kind that is watched."""
    found = (projected(source.decode, raw) for source in SOURCES)
    return Reasons(tuple(one.why for one in found if isinstance(one, Unreadable)))


POINTERS = ("/spec/a~1b/0", "/metadata/labels", "")
PARSERS = (
    Parser(
        "window",
        _window,
        st.tuples(
            around("0 22 * * SAT,SUN", "*/5 1-3 29 2 FRI-SUN", "0 0 31 4 *"),
            around("4h", "1d2h3m4s", "3650d"),
            around("UTC", "Europe/Oslo", "America/New_York"),
        ),
        (BadWindow,),
    ),
    Parser("duration", parse_duration, around("7d", "1h30m", "1.5h300ms"), (BadDuration,)),
    Parser("quantity", parse_quantity, around("512Gi", "1.5", "250m", "1e3"), (BadQuantity,)),
    Parser("version", Version.parse, around("1.4.0", "2.0.0-rc.1+build"), (BadVersion,)),
    Parser("version of a CSV", _csv, around("cert-manager.v1.15.0", "foo-1.2.3.4", "a.v1.2.3-rc.1")),
    Parser("range", _range, st.tuples(around(">=1.4.0 <2.0.0 || ~2.1", "^1.x", "!=1.2.3-rc.1"), text), (BadRange,)),
    Parser("selector", parse_selector, around("a=b,c in (d,e),!f", "x!=y", "example.org/a notin (b)"), (BadSelector,)),
    Parser("pointer", Pointer.parse, around(*POINTERS), (BadPointer,)),
    Parser("field path", decode_step, around("f:spec", 'k:{"name":"web"}', "v:1", "i:0"), (BadFields,)),
    Parser(
        "patch",
        _patch,
        around(
            '[{"op": "add", "path": "/spec/a/-", "value": {"x": [1]}}]',
            '[{"op": "copy", "from": "/spec/a", "path": "/spec/b"}, {"op": "remove", "path": "/spec/a/0"}]',
            '[{"op": "test", "path": "/spec/a/1/b", "value": "c"}, {"op": "move", "from": "/spec", "path": "/x"}]',
        ),
    ),
    Parser(
        "ignored fields",
        lambda given: Reasons(tuple(map(str, mask.parse(given).bad))),
        around("/spec/a, /spec/b/0", "/metadata/labels/x", "/status"),
    ),
    Parser(
        "exclusions", _exclusions, around("- {kind: Service, name: 'a*', namespace: '[a-z]?'}", "- kind: A\n  name: b")
    ),
    Parser("scope", _scope, around("true", "false", "swap-enable, kubelet", "True")),
    Parser(
        "expiring overrides",
        _overrides,
        st.tuples(
            around("2026-03-29T00:30:00Z", "2026-03-29T00:30:00.5+23:59", "0001-01-01T00:00:00+14:00"), text, text
        ),
    ),
    Parser("YAML", from_yaml, around("a: [1, b]", "- {a: 2024-10-01}", "a: |\n  b"), (BadYaml,)),
    Parser(
        "kubeconfig",
        lambda raw: load_from_bytes(raw, source="Secret a/b", trusted=False, env={}),
        kubeconfigs(),
        (BadConfig,),
    ),
    Parser(
        "error of a server",
        lambda given: Reasons((str(error_from(given[0], given[1], what="get it", retry_after=given[2])),)),
        st.tuples(
            st.sampled_from((400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 599)),
            st.one_of(st.binary(max_size=50), json_values.map(lambda value: json.dumps(value).encode()))
            | around(
                '{"kind": "Status", "message": "m", "details": {"retryAfterSeconds": 1, "causes": []}}',
            ).map(lambda given: given.encode(errors="surrogatepass")),
            st.none() | around("1", "86400", "Wed, 21 Oct 2026 07:28:00 GMT"),
        ),
    ),
    Parser("schema of a CRD", _schema, crds(), (ValueError,)),
    Parser("HyperConverged", _hco, json_values),
    Parser("namespaced name", namespaced, around("a/b", "a"), (BadSetting,)),
    Parser(
        "option of a profile",
        lambda given: set_options("load-aware-rebalancing", [given], ProfileOptions()),
        around("loadAware.evictionLimits.total=5", "mode=Automatic", "a={}", "mode=[{}]").filter(
            lambda given: len(given) < 300
        ),
        (BadSetting,),
    ),
    Parser("watched object", _objects, objects()),
)
