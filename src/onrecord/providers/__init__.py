"""Providers: one package for each protocol that models are reached by."""
