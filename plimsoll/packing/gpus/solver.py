"""The HiGHS solver without output and with one thread, so that equal programs have equal solutions."""

from typing import Any, Final

SOLVER_SECONDS: Final = 60.0
"""Time limit of a solution. It only stops a solver that would not end: other limits are the same on every machine."""


def solver(**options: Any) -> Any:
    """A HiGHS instance (`highspy.Highs`, which has no types) with these options.

    highspy is imported on the first call, because the import takes a fifth of a second.
    """
    import highspy

    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in ({"output_flag": False, "threads": 1, "random_seed": 0} | options).items():
        highs.setOptionValue(option, value)
    return highs
