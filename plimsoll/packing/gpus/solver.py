"""The HiGHS solver without output and with one thread, so that equal programs have equal solutions."""

from typing import Any, Final

SOLVER_SECONDS: Final = 60.0
"""Time limit of a solution. It only stops a solver that would not end: other limits are the same on every machine."""


def solver(**options: Any) -> Any:
    """A HiGHS instance without types, with these options. It has what `highspy.Highs` inherits.

    highspy is imported on the first call, because the import takes a fifth of a second.
    """
    import highspy

    # `Highs` itself sets callbacks when it is made, which since 1.16 prints a banner before output can be turned off.
    highs: Any = highspy._Highs()  # type: ignore[attr-defined]
    for option, value in ({"output_flag": False, "threads": 1, "random_seed": 0} | options).items():
        highs.setOptionValue(option, value)
    return highs
