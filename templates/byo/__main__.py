"""`pulumi up` starts here: the stacks of stacks/ say what is declared."""

from plimsoll.stacks import run

run()

# Resources of your own go beside it. Components take Outputs, for example of a StackReference:
#
#     from plimsoll.components import Queue
#
#     Queue("batch", {"parent_queue": "research", "resources": {"gpu": {"quota": 4}}})
