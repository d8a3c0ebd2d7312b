"""Models that run on this machine: a GGUF file behind llama.cpp, in a process of its own (extra ``local``)."""
