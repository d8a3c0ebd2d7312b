"""The HTTP side of the adapters: one shared aiohttp session per event loop, server-sent events, proxies."""
