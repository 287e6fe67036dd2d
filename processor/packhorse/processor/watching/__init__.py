"""Beside the loop: what is overdue is sent, what does not move is named, and a member says how it is."""
