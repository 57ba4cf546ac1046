"""What an acknowledged commit is worth, derived from what was in force; pure."""
