"""Vendors and servers that speak Chat Completions: OpenRouter, DeepSeek, Mistral, Azure, Ollama, llama.cpp, yours.

And embeddings from those that have them.
"""

from onrecord.providers.openai_compatible.available import Available, available
from onrecord.providers.openai_compatible.client import azure, openai_compatible, openrouter, vendor_model
from onrecord.providers.openai_compatible.embeddings import HttpEmbedder, embedder_named, embeddings
from onrecord.providers.openai_compatible.vendors import VENDORS, Family, Vendor

__all__ = (
    "VENDORS", "Available", "Family", "HttpEmbedder", "Vendor", "available", "azure", "embedder_named", "embeddings",
    "openai_compatible", "openrouter", "vendor_model",
)  # fmt: skip
