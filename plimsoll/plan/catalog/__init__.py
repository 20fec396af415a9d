"""Instance types: the built-in table, those that an Environment offers, and their labels."""
