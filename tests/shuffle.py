"""`pytest --shuffle SEED` runs modules, and the tests of each, in another order: no test may need those before it."""

import random
from itertools import groupby

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run modules, and the tests of each, in another order")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Modules stay together, so that their fixtures are made once. The same seed gives the same order."""
    seed = config.getoption("shuffle")
    if seed is None:
        return
    chance = random.Random(seed)
    modules = [list(group) for _, group in groupby(items, lambda item: item.path)]
    chance.shuffle(modules)
    for tests in modules:
        chance.shuffle(tests)
    items[:] = [test for tests in modules for test in tests]
