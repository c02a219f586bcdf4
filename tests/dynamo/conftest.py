import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def fresh():
    from flambeau.compiler import reset

    reset()
    yield
    reset()


# Tests of what compiled code does otherwise than plain code on purpose: not under ``config.strict_calls``.
DIFFER = {
    "test_backends": "a backend that is wrong",
    "test_wrap_numpy": "plain NumPy refuses tensors with a gradient",
    "test_gradient_through_a_numpy_break": "plain NumPy refuses tensors with a gradient",
    "test_functions_of_the_library_that_act_are_called_once": "effects that can't be undone",
    "test_lazy_parameters": "effects that can't be undone: the class of a parameter changes",
    "test_assume_constant_result": "a function that is called once",
    "test_substitute_in_graph": "a substitute of another value",
    "test_run_and_stance": "errors of a stance",
    "test_a_violated_constraint_names_symbol_value_and_line": "errors of marks",
    "test_the_reason_of_a_recompilation_names_the_symbol": "errors of marks",
    "test_data_dependent_questions": "the compiled error names the expression",
    "test_checks_that_fail_have_their_own_words": "the compiled error names the expression",
    "test_sizes_of_new_tensors": "the compiled error names the expression",
}


@pytest.fixture(autouse=True)
def plain_beside(request):
    from flambeau.dynamo.config import config

    if not config.strict_calls or request.node.originalname not in DIFFER:
        yield
        return
    with config.patch(strict_calls=False):
        yield
