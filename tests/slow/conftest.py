"""Fixtures of the tests on real servers that slow tests need, too."""

from tests.pg.conftest import place

__all__ = ["place"]
