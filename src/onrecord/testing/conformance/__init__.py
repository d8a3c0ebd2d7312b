"""Suites that an implementation of a port runs against itself: subclass one and say how to make it."""
