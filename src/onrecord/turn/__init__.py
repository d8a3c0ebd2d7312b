"""The loop: moments, the director and its stage, speaking, tools, pausing, and the take that holds them."""
