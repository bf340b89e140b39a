"""What values a program can hold, worked out from the schemas of its tools and its constants."""
