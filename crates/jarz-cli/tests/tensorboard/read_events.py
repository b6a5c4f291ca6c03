"""Prints all scalars of a folder of event files as one line of JSON, again for every line of input."""

import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

accumulator = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0})
for _ in sys.stdin:
    accumulator.Reload()
    tags = accumulator.Tags()["scalars"]
    scalars = {tag: [[e.step, e.value, e.wall_time] for e in accumulator.Scalars(tag)] for tag in tags}
    print(json.dumps(scalars), flush=True)
