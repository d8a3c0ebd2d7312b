"""The Responses protocol of OpenAI: what its models can do, requests as bytes, events as chunks."""
