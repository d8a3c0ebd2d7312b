"""The model port: requests, chunks, cards, names, and bytes cached beside the conversation."""
