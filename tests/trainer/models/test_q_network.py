"""The heads of Q networks."""

import torch

from rltrain.models.q_network import QHeads


def test_dueling_values_are_the_mean_over_actions() -> None:
    torch.manual_seed(0)
    heads = QHeads(6, (8,), 3, dueling=True, atoms=5)
    features = torch.randn(4, 6)
    assert heads.value is not None
    torch.testing.assert_close(heads(features).mean(dim=1), heads.value(features))
