"""Images that an installation names for assets, in variables such as RELATED_IMAGE_KUBEVIRT_METRICS_EXPORTER."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "RELATED_IMAGE_"


def related_images(environment: Mapping[str, str]) -> dict[str, str]:
    """By key: `kubevirt-metrics-exporter`. An empty variable names none."""
    return {
        name.removeprefix(PREFIX).lower().replace("_", "-"): image
        for name, image in environment.items()
        if name.startswith(PREFIX) and image
    }
