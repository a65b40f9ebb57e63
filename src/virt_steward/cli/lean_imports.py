"""Imports structlog and aiohttp without what they take along and we do not use: 6 MiB of every controller.

structlog takes rich, for tracebacks in colour, and greenlet, if they are installed. aiohttp loads the certificates
of the system for connections that name no trust; ours all do. Its frozenlist takes the library of C++.
"""

import os
import ssl
import sys
from importlib import import_module


def _trusts_nobody(*_: object, **__: object) -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


hidden = [name for name in ("rich", "greenlet") if name not in sys.modules]
for name in hidden:
    sys.modules[name] = None  # type: ignore[assignment]  # so that its import fails
import_module("structlog")
for name in hidden:
    del sys.modules[name]

os.environ["FROZENLIST_NO_EXTENSIONS"] = "1"
default, ssl.create_default_context = ssl.create_default_context, _trusts_nobody
try:
    import_module("aiohttp")
finally:
    ssl.create_default_context = default
    del os.environ["FROZENLIST_NO_EXTENSIONS"]
