"""Orders of people to the relay: what is held, release, discard, republish. The relay's owner carries them out."""
