"""Tell `support` which tests a file has, so that it compiles their kernels together."""

from __future__ import annotations

import pytest

from . import support


@pytest.fixture(scope="module", autouse=True)
def tests_of_the_file(request: pytest.FixtureRequest) -> None:
    support.kernels.begin(item for item in request.session.items if item.path == request.path)
