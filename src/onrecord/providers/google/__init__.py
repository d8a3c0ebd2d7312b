"""The generateContent protocol of Google: what its models can do, requests as bytes, events as chunks."""

from onrecord.providers.google.cards import Dialect, google_card
from onrecord.providers.google.client import GoogleModel, google

__all__ = ("Dialect", "GoogleModel", "google", "google_card")
