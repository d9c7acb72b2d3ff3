"""Mutants: small breakages of what plans mean, each with the test that must fail on it. `make mutants` tries them."""
