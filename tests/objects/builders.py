"""Objects as an API server of version 1.36 returned them, each written by several managers."""

from __future__ import annotations

from typing import Any


def managed(manager: str, fields: dict[str, Any], *, operation: str = "Apply", subresource: str = "") -> dict[str, Any]:
    entry = {"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": fields}
    return {**entry, "subresource": subresource} if subresource else entry


def a_config_map(*, name: str = "settings", **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data or {"a": "1"},
    }


def a_secret(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "default"}, "data": data}


def an_edited_config_map() -> dict[str, Any]:
    """Two managers applied `a`, a third one edited."""
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {
            "name": "settings",
            "namespace": "default",
            "uid": "a337d69e-5be7-4f8d-81df-45e53ad2014c",
            "resourceVersion": "216",
            "creationTimestamp": "2026-11-16T03:08:44Z",
            "labels": {"app.kubernetes.io/name": "x"},
            "managedFields": [
                managed("second", {"f:data": {"f:a": {}}}),
                managed(
                    "owner",
                    {
                        "f:data": {"f:a": {}, "f:b.txt": {}},
                        "f:metadata": {"f:labels": {"f:app.kubernetes.io/name": {}}},
                    },
                ),
                managed("editor", {"f:binaryData": {".": {}, "f:z": {}}, "f:data": {"f:c": {}}}, operation="Update"),
            ],
        },
        "data": {"a": "1", "b.txt": "line\nline", "c": "3"},
        "binaryData": {"z": "AAAA"},
    }


def a_deployment() -> dict[str, Any]:
    """Applied by its owner; an injector applied a sidecar and a variable; an editor patched in another variable."""
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "generation": 3,
            "finalizers": ["example.com/hold"],
            "managedFields": [
                managed("injector", _INJECTED),
                managed("owner", _OWNED),
                managed("editor", {"f:spec": _of_web({"f:env": {_EDITED: _VARIABLE}})}, operation="Update"),
                managed("kubelet", _OBSERVED, operation="Update", subresource="status"),
            ],
        },
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                    "containers": [
                        {"name": "sidecar", "image": "s:1", "resources": {}, "imagePullPolicy": "IfNotPresent"},
                        {
                            "name": "web",
                            "image": "web:1",
                            "args": ["-a", "-b"],
                            "ports": [
                                {"containerPort": 80, "protocol": "TCP"},
                                {"name": "dns", "containerPort": 53, "protocol": "UDP"},
                            ],
                            "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}],
                            "imagePullPolicy": "IfNotPresent",
                        },
                    ],
                    "tolerations": [{"key": "a", "operator": "Exists"}],
                    "restartPolicy": "Always",
                },
            },
        },
        "status": {"replicas": 1, "conditions": [{"type": "Available", "status": "True", "lastUpdateTime": None}]},
    }


_EDITED = 'k:{"name":"Y"}'
_VARIABLE: dict[str, Any] = {".": {}, "f:name": {}, "f:value": {}}


def _of_web(fields: dict[str, Any]) -> dict[str, Any]:
    return {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': fields}}}}


_INJECTED: dict[str, Any] = {
    "f:spec": {
        "f:selector": {},
        "f:template": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {
                "f:containers": {
                    'k:{"name":"sidecar"}': {".": {}, "f:image": {}, "f:name": {}},
                    'k:{"name":"web"}': {".": {}, "f:env": {'k:{"name":"X"}': _VARIABLE}, "f:name": {}},
                }
            },
        },
    }
}
_OWNED: dict[str, Any] = {
    "f:metadata": {"f:finalizers": {'v:"example.com/hold"': {}}},
    "f:spec": {
        "f:replicas": {},
        "f:selector": {},
        "f:template": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {
                "f:containers": {
                    'k:{"name":"web"}': {
                        ".": {},
                        "f:args": {},
                        "f:image": {},
                        "f:name": {},
                        "f:ports": {
                            'k:{"containerPort":53,"protocol":"UDP"}': {
                                ".": {},
                                "f:containerPort": {},
                                "f:name": {},
                                "f:protocol": {},
                            },
                            'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}},
                        },
                    }
                },
                "f:tolerations": {},
                "f:volumes": {'k:{"name":"tmp"}': {".": {}, "f:emptyDir": {}, "f:name": {}}},
            },
        },
    },
}
_OBSERVED: dict[str, Any] = {
    "f:status": {
        "f:conditions": {
            ".": {},
            'k:{"type":"Available"}': {".": {}, "f:lastUpdateTime": {}, "f:status": {}, "f:type": {}},
        },
        "f:replicas": {},
    }
}


def a_gadget() -> dict[str, Any]:
    """A custom resource with every type of list. Its owner applied `empty` as an empty map, the second filled it."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": {
            "name": "one",
            "managedFields": [
                managed(
                    "owner",
                    {
                        "f:spec": {
                            "f:atomic": {},
                            "f:atomicMap": {},
                            "f:empty": {},
                            "f:flags": {"v:true": {}},
                            "f:free": {"f:deep": {".": {}, "f:el": {}, "f:em": {}, "f:list": {}, "f:nil": {}}},
                            "f:levels": {"v:1": {}, "v:2": {}},
                            "f:maybe": {},
                            "f:ports": {
                                'k:{"port":53,"protocol":"UDP"}': {".": {}, "f:port": {}, "f:protocol": {}},
                                'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:note": {}, "f:port": {}},
                            },
                            "f:ratios": {"v:1.5": {}, "v:1e+21": {}, "v:2": {}},
                            "f:tags": {'v:"x"': {}, 'v:"ü\\"q"': {}},
                        }
                    },
                ),
                managed(
                    "second",
                    {
                        "f:spec": {
                            "f:empty": {"f:k": {}},
                            "f:levels": {"v:3": {}},
                            "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}},
                            "f:tags": {'v:"\\u003cb\\u003e\\u0026"': {}},
                        }
                    },
                ),
            ],
        },
        "spec": {
            "atomic": ["p", "q"],
            "atomicMap": {"a": "1", "b": "2"},
            "empty": {"k": "v"},
            "flags": [True],
            "free": {"deep": {"el": [], "em": {}, "list": [{"name": "k", "x": 1.5}], "nil": None}},
            "levels": [1, 2, 3],
            "maybe": None,
            "ports": [{"note": "web", "port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
            "ratios": [1.5, 2, 1e21],
            "tags": ["x", 'ü"q', "<b>&"],
        },
    }
