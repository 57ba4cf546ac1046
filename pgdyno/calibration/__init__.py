"""What the load generator itself can do on this machine: measured against a null server, kept."""
