import pytest

from virt_steward.objects.quantities import BadQuantity, parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("7", 7),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5),
        ("250m", 0.25),
        ("2k", 2000),
        ("3Ki", 3072),
        ("512Gi", 512 * 2**30),
        ("2Ti", 2**41),
        ("1e3", 1000),
        ("12E2", 1200),
        ("2E", 2e18),
        ("65854532Ki", 65854532 * 1024),
        ("1234567n", 0.001234567),
    ],
)
def test_parse_quantity_reads_units(text: str, value: float) -> None:
    assert parse_quantity(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "Gi", "-1", "1 Gi", "1gi", "1KiB", "1,5", "0x10", "nan", "1e999", "9" * 40])
def test_parse_quantity_refuses_invalid_text(text: str) -> None:
    with pytest.raises(BadQuantity):
        parse_quantity(text)
