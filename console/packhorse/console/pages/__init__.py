"""The operators' web page: what the service knows and does, for people in a browser."""
