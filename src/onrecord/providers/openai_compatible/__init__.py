"""Servers and vendors that speak Chat Completions: llama.cpp, Ollama, vLLM, OpenRouter, DeepSeek, Groq, Z.ai, yours."""

from onrecord.providers.openai_compatible.vendors import VENDORS, Available, Vendor, available, openai_compatible

__all__ = ("VENDORS", "Available", "Vendor", "available", "openai_compatible")
