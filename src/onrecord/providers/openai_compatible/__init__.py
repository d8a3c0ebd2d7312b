"""Vendors and servers that speak Chat Completions: OpenRouter, DeepSeek, Mistral, Azure, Ollama, llama.cpp, yours."""

from onrecord.providers.openai_compatible.available import Available, available
from onrecord.providers.openai_compatible.client import azure, openai_compatible, openrouter, vendor_model
from onrecord.providers.openai_compatible.vendors import VENDORS, Family, Vendor

__all__ = (
    "VENDORS", "Available", "Family", "Vendor", "available", "azure", "openai_compatible", "openrouter", "vendor_model",
)  # fmt: skip
