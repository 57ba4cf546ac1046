"""Statistics, pure: numbers in, numbers with uncertainty out."""
