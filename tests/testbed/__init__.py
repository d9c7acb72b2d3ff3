"""A real Kubernetes for the cluster tests: kind where Docker answers, else one node made of the same parts."""
