"""Wording of hmm, lattice."""

import pytest

from mixent.hmm.lattice import forward_backward, log_likelihood, viterbi

from ...hmm.test_lattice import case


def test_what_does_not_fit_is_refused():
    log_start, log_trans, log_emit, lengths = case(0, by_step=True)
    for function in (log_likelihood, forward_backward, viterbi):
        with pytest.raises(ValueError, match="log_emit has 21 steps, but lengths add up to 22"):
            function(log_start, log_trans, log_emit[1:], lengths)
        with pytest.raises(ValueError, match="log_trans has 4 matrices, but a sequence has 6 steps"):
            function(log_start, log_trans[1:], log_emit, lengths)
