"""pgdyno, a dynamometer for PostgreSQL: a known load, everything watched, a sound answer."""

__version__ = "0.1.0"
