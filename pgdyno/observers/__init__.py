"""What watches the system under test during a trial: one file a source, behind `base`."""
