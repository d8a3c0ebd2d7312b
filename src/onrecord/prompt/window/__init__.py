"""Windows: which part of a long conversation a request shows.

- ``window``: the feature `Window`; ``removing``: how it makes room, by what ``planning`` says; ``outline``: where it
  may not cut; ``gaps``: what has left, from turn to turn;
  ``own_plan``: a plan of the application
- ``compaction``: the feature `Compaction`; ``past``: what came before a turn, with ``sizes``
- both: ``evicted``: what the record says; ``summarising``: the call that makes a summary
"""
