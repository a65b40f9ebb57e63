"""The conversion webhook of HyperConverged, on loopback and with TLS."""

from __future__ import annotations

import base64
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec
from aiohttp import web

from virt_steward_demo.local.certificates import Authority
from virt_steward_demo.local.files import write_file
from virt_steward_demo.simulation.conversion import convert

if TYPE_CHECKING:
    from virt_steward.kube.client import Object
    from virt_steward_demo.local.certificates import Identity

PATH = "/convert"
MAX_REQUEST_BYTES = 16 * 1024 * 1024  # a list of objects comes in one request


class ConversionWebhook:
    """Serves until the end of the `async with` block. `conversion` is the matching stanza of the CRD."""

    def __init__(self) -> None:
        self._authority = Authority("virt-steward-simulation")
        application = web.Application(client_max_size=MAX_REQUEST_BYTES)
        application.router.add_post(PATH, _convert)
        self._runner = web.AppRunner(application, access_log=None)
        self._port = 0

    @property
    def conversion(self) -> Object:
        client = {
            "url": f"https://127.0.0.1:{self._port}{PATH}",
            "caBundle": base64.b64encode(self._authority.certificate).decode(),
        }
        return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=_context(self._authority.server("converter")))
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


async def _convert(request: web.Request) -> web.Response:
    review = msgspec.json.decode(await request.read())
    asked = review["request"]
    version = asked["desiredAPIVersion"].rpartition("/")[2]
    response = {
        "uid": asked["uid"],
        "convertedObjects": [convert(one, version) for one in asked["objects"]],
        "result": {"status": "Success"},
    }
    body = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
    answer = web.Response(body=msgspec.json.encode(body), content_type="application/json")
    answer.force_close()  # so that no connection is open at the end
    return answer


def _context(identity: Identity) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:  # ssl reads keys from files only
        certificate = write_file(Path(folder, "certificate.pem"), identity.certificate)
        context.load_cert_chain(certificate, write_file(Path(folder, "key.pem"), identity.key))
    return context
