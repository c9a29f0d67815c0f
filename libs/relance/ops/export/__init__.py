"""Hands in the formats of other programs, as a viewer may see them."""
