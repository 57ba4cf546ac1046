"""Reports: they render what is stored and compute nothing that a verdict depends on."""
