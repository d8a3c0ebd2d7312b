"""The generateContent protocol of Google: what its models can do, requests as bytes, events as chunks."""
