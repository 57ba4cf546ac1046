"""Where processes run: one file a kind of host, behind the protocol in `base`."""
