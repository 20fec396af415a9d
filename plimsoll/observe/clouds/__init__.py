"""Instance types and prices as the APIs of clouds list them."""
