"""Dataset builders: probe generation, folders, cards, and the way to the Hub."""
