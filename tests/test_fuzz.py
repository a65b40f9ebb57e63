import pytest

from tests.fuzz import PARSERS, Parser, fuzz


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_parser_answers_foreign_input_with_result_or_reason(parser: Parser) -> None:
    fuzz(parser, 100)
