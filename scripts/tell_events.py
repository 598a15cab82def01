#!/usr/bin/env python3
"""Prints the story that an event file tells: one line an event, the frequent ones left out."""
import json
import sys

FREQUENT = {"health", "checkpoint_taken"}
STANDARD = ("t", "event", "generation", "step", "rank", "pid", "actor", "cause")


def tell(event):
    parts = [f"{event['t']:9.3f} s  {event['event']:<20} generation {event['generation']}"]
    if "step" in event:
        parts.append(f"step {event['step']}")
    if "rank" in event:
        worker = f"worker {event['rank']}"
        parts.append(worker + (f" (pid {event['pid']})" if "pid" in event else ""))
    elif "pid" in event:
        parts.append(f"pid {event['pid']}")
    if "actor" in event:
        parts.append(event["actor"])
    parts += [f"{name}={value}" for name, value in event.items() if name not in STANDARD]
    if "cause" in event:
        parts.append(event["cause"])
    return "  ".join(parts)


def main(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                break  # the writer was killed inside its last line
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                print("(a line that is not whole)")
                continue
            if event["event"] not in FREQUENT:
                print(tell(event))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tell_events.py FILE")
    main(sys.argv[1])
