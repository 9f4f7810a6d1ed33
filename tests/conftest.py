"""What all tests share: how hard properties are tried, and that nobody's own settings count."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import cache

import httpcore2
import pytest
from hypothesis import settings

from tests import cases, properties

settings.load_profile(properties.FAST)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--case", default="", help="run only the cases of a table whose name contains this")


def pytest_configure(config: pytest.Config) -> None:
    cases.only_case = config.getoption("--case")


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_ones_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Rules, approvals and secrets of whoever runs the tests neither count in them nor are touched by them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        yield


@pytest.fixture(scope="session", autouse=True)
def certificates_are_read_once() -> Iterator[None]:
    """A client of HTTP reads the certificates of the system when it is made, for 20 ms; here they are made by hundreds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


def pytest_collection_finish() -> None:
    """What is loaded by now stays, so no collection of garbage looks through it again."""
    gc.collect()
    gc.freeze()
