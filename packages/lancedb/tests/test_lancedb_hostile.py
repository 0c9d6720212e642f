"""Databases that have lost files, or whose settings say nonsense: a clear error, and nothing that makes it worse."""

import pytest

pytestmark = pytest.mark.anyio
