"""How likely a signature is a match, and when: exact dynamic programming over time points, no enumeration of worlds."""
