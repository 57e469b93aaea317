"""Options that all tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# The same examples every time, on every machine, however slow it is.
settings.register_profile(
    "same-everywhere", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same-everywhere")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="rewrite the golden reports instead of comparing")


@pytest.fixture(scope="session", autouse=True)
def no_nvcc() -> Iterator[None]:
    """What NVRTC refuses stays refused, whatever compilers this machine has; tests of nvcc say so themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRYWARP_NVCC", "off")
        yield
