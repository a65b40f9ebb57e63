"""`virt-steward version`."""

from virt_steward import __version__
from virt_steward.cli.output import Output, OutputOption, answer


def version(output: OutputOption = Output.TEXT) -> None:
    """Print the version."""
    answer(output, f"virt-steward {__version__}", {"version": __version__})
