"""A projection that is rebuilt beside the old one and then swapped: the code of docs/how-to/rebuild-a-projection.md."""
