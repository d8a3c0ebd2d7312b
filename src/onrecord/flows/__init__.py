"""Flows: who has the floor, step by step, across turns and timers."""
