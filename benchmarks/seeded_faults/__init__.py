"""Change the program in small ways, one at a time, and see whether the tests notice.

    python -m benchmarks.seeded_faults --count 240 --seed 1 --jobs 2 --out faults.jsonl

`changes.py` finds places in the syntax tree of each room and what could go wrong there; `rooms.py` says which tests
are a room's; `__main__.py` runs them on a copy of the repository and prints a table. A run that was interrupted resumes
from the file that it was writing.
"""
