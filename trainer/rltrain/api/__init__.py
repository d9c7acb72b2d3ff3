"""The manifest: models of RLTrainingJob, their validation and the CRD made from them. Imports nothing heavy."""
