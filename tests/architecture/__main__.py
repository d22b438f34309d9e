"""``python -m tests.architecture``: the rooms of mcheck by level, and the arrows between them."""

from tests.architecture.rooms import plan

print(plan())
