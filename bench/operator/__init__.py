"""The operator at scale, beside KubeRay's: a real control plane, nodes that only pretend, the same work for both."""
