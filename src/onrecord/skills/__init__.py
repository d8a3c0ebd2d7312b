"""Skills: instructions and tools under a name, taken up by the model or led to by a graph."""

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
