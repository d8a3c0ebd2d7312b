"""The rule-based stand-in behind ``offline``: no key, no network, no weights, no randomness, no clock."""
