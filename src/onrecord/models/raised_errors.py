"""What a model raised, as an error of a kind: models of other people raise anything."""

from __future__ import annotations

from onrecord.errors import ModelError, OnrecordError

__all__ = ("raised_error",)


def raised_error(provider: str, model: str, problem: BaseException) -> ModelError:
    """What a model raised, as an error of a kind; what is none of ours is its cause, and is not quoted.

    Raises what tells that the library was used wrongly: no other attempt and no other model changes that.
    """
    if isinstance(problem, ModelError):
        return problem
    if isinstance(problem, OnrecordError):
        raise problem
    from onrecord.models.classify_errors import kind_of_exception  # every agent imports this, and few see errors

    told = f"model {model!r} raised {type(problem).__name__}"
    error = ModelError(told, kind=kind_of_exception(problem), provider=provider)
    error.__cause__ = problem
    return error
