"""Skills: instructions and tools under a name, taken up by the model or led to by a graph.

Where things are:

- ``skill``, ``registry``: a skill, and an agent's skills without a graph; ``skill_tools``: how a model reaches them
- ``folder``, ``front_matter``, ``skill_files``: skills from folders with a ``SKILL.md``
- ``graph``: made by ``graph_making`` of what ``routes`` and ``matching`` declare, into a ``graph_plan``; the
  ``checkup`` files say what is wrong with it, ``diagram`` draws it
- ``turn_start`` with ``scorers``: where a turn begins; ``cursor`` with ``hop`` and ``guards``, all pure: where it goes
  on; ``steering``: both in a turn; ``engagement``: whether the graph takes part at all
- ``procedure``: steps; ``proposals``: what tools propose
- ``skill_hooks``: all of it at its moments; ``shown_skills``: what a request has of it; ``skill_entries`` and
  ``skill_state``: what is filed, and what is known of that
"""

from onrecord.skills.checkup import Finding
from onrecord.skills.cursor import Move
from onrecord.skills.engagement import Engagement
from onrecord.skills.folder import SkillFolder, read_skill_folder, skills_from_folder
from onrecord.skills.graph import SkillGraph
from onrecord.skills.graph_plan import Escalation
from onrecord.skills.guards import ToolOutcome
from onrecord.skills.hop import Hop
from onrecord.skills.matching import AllOf, Intent, Keywords, Pattern
from onrecord.skills.registry import SkillRegistry, Skills, offered_with
from onrecord.skills.routes import Decide, Route, Start
from onrecord.skills.scorers import ByClassifier, ByModel, BySimilarity, ByWords, Candidate, Scorer
from onrecord.skills.skill import Skill, SkillStep
from onrecord.skills.skill_entries import SkillProposed
from onrecord.skills.skill_files import skill_files
from onrecord.skills.turn_start import Closeness

__all__ = (
    "AllOf", "ByClassifier", "ByModel", "BySimilarity", "ByWords", "Candidate", "Closeness", "Decide", "Engagement",
    "Escalation", "Finding", "Hop", "Intent", "Keywords", "Move", "Pattern", "Route", "Scorer", "Skill", "SkillFolder",
    "SkillGraph", "SkillProposed", "SkillRegistry", "SkillStep", "Skills", "Start", "ToolOutcome", "offered_with",
    "read_skill_folder", "skill_files", "skills_from_folder",
)  # fmt: skip
