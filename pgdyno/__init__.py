"""pgdyno: a dynamometer for PostgreSQL. A known load, everything watched, an answer worth something."""

__version__ = "0.1.0"
