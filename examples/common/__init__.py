"""What the examples share: where they run, and the commands of Packhorse that run beside them."""
