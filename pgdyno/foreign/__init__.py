"""Output files of other load generators, read as trials: what they say and what they cannot say."""
