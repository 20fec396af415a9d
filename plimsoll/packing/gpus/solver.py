"""HiGHS, quiet and on one thread, so that the same program has the same solution."""

from typing import Any


def solver(**options: Any) -> Any:
    """A HiGHS instance (`highspy.Highs`, which has no types) with these options.

    The library is loaded here: it takes a fifth of a second, which only those who solve something should pay.
    """
    import highspy

    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in ({"output_flag": False, "threads": 1, "random_seed": 0} | options).items():
        highs.setOptionValue(option, value)
    return highs
