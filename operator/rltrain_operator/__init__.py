"""The Kubernetes operator of rltrain: renders and reconciles RLTrainingJobs."""
