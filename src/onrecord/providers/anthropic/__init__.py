"""The Messages protocol of Anthropic: what its vendors can do, requests as bytes, events as chunks."""
