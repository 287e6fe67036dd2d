# mypy: ignore-errors
"""
What all submitting children have in common; it runs in every environment, so it imports nothing else.

`… submit COUNT PER` accepts COUNT jobs, PER in a transaction, as fast as it goes, once it has read a line; it prints the seconds.
`… pace FIRST RATE SECONDS` accepts a job at a time at a fixed rate; it prints when each was begun to be submitted, by its number.
"""

import json
import sys
import time


def serve(submit, words):
    """Do what *words* ask for with *submit*, which accepts jobs with these numbers in one transaction."""
    way, *numbers = words
    if way == "submit":
        count, per = map(int, numbers)
        submit([0])
        print("ready", flush=True)
        sys.stdin.readline()
        began, cpu = time.monotonic(), time.process_time()
        for first in range(1, count + 1, per):
            submit(range(first, min(first + per, count + 1)))
        print(json.dumps([time.monotonic() - began, time.process_time() - cpu]), flush=True)
    else:
        first, rate, seconds = int(numbers[0]), float(numbers[1]), float(numbers[2])
        told, began = {}, time.monotonic()
        for turn in range(int(rate * seconds)):
            pause = began + turn / rate - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            told[first + turn] = time.time()
            submit([first + turn])
        print(json.dumps(list(told.items())), flush=True)
