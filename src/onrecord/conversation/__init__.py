"""What was said: messages, rounds, inputs, and the logs that hold them."""
