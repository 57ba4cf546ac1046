"""What docs/ says is what the code says."""

import pytest

from tools import generate_docs

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("path", generate_docs.documents(), ids=lambda path: path.name)
def test_generated_files_are_up_to_date(path) -> None:
    assert path.read_text() == generate_docs.documents()[path], "run: make docs"
