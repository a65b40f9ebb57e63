"""The parsers of `tests/fuzz.py`, with many inputs each."""

import pytest

from tests.fuzz import PARSERS, Parser, fuzz

INPUTS = 10_000


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_parser_survives_many_foreign_inputs(parser: Parser) -> None:
    fuzz(parser, INPUTS)
