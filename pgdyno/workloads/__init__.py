"""Workloads as data: a folder each, found and validated by `catalog`."""
