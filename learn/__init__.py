"""How well it learns: the examples trained to a budget of steps, several seeds each, and a table of their returns."""
