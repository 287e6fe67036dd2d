"""
Take the pictures of the console anew: `python -m docs.console.take`, or `make screenshots`.

It runs the demo that goes on, on services of its own or those that the environment names, plays a person who is on call, and writes a
picture of each page into this folder. It takes some six minutes. Needs a Chromium: `make browser`.

Exit codes: 0 all were taken; 1 something could not be shown, and the pictures are as far as it came.
"""

import socket
import sys
from pathlib import Path

from docs.console.airline import Airline, airline
from docs.console.camera import Camera, Machine, blank_page
from docs.console.pictures import HERE
from docs.console.walk import Walk
from tests.support.chromium import NoBrowser, browser
from tests.support.stack import temporary_folder

from packhorse.core.users import system_user


def take() -> None:
    """
    Take them all.

    Raises:
        NoBrowser: There is none.
        AssertionError: Something did not come, or a page shows what belongs to this machine alone.
    """
    with browser() as chromium, temporary_folder() as folder, airline(folder) as demo:
        tell("the demo goes on; taking pictures of its console")
        token = demo.command(
            "operators", "token", "anna", "--role", "admin", "--personal", "--edit", "--expires", "90d"
        )
        secrets = (token, str(folder), str(Path.home()))
        with blank_page(chromium) as page:
            machine = Machine(socket.gethostname(), system_user())
            camera = Camera(page, demo.console, HERE, machine=machine, secrets=secrets)
            go(Walk(page, camera, demo), demo, token)
            page.goto("about:blank")
        assert camera.left == [], f"not taken: {', '.join(camera.left)}"
    tell("taken, and the demo has ended")


def go(walk: Walk, demo: Airline, token: str) -> None:
    """Walk through it all, and make what is to be seen where it is needed."""
    walk.come_in(token)
    demo.command("operators", "token", "ben", "--role", "operator", "--expires", "30d")
    demo.command("operators", "add", "carla@example.org", "--user", "--role", "viewer")
    hold = demo.write_too_large()
    poison = demo.poison()
    aircraft = demo.refuse()
    walk.quarantine(aircraft, poison)
    walk.redrive("refused")
    walk.jobs()
    demo.wait_for_a_past()
    walk.replay()
    walk.relay(hold)
    walk.groups()
    walk.look_around()


def tell(text: str) -> None:
    """Say how far it is."""
    sys.stderr.write(f"screenshots: {text}\n")


if __name__ == "__main__":
    try:
        take()
    except NoBrowser as error:
        sys.exit(f"screenshots: {error}")
