"""The documentation says what the code does: equations, the public names, and every block of code in it."""

import ast
import importlib.util
import re
import socket
from pathlib import Path

import pytest

import ganns

ROOT = Path(__file__).parents[1]


def _program(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def equations():
    return _program("equations")


def test_each_equation_has_one_home(equations):
    assert {number: len(homes) for number, homes in equations.homes().items()} == dict.fromkeys(range(2, 17), 1)


def test_each_equation_has_its_test():
    tree = ast.parse((ROOT / "tests/test_equations.py").read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    found = {int(match[1]) for name in names if (match := re.match(r"test_equation_(\d+)_", name))}
    assert sorted(found) == list(range(2, 17))


def test_page_of_equations_is_up_to_date(equations):
    assert equations.PAGE.read_text(encoding="utf-8") == equations.page(), "run: python docs/equations.py"


def test_page_of_results_is_up_to_date():
    results = _program("results")
    assert results.PAGE.read_text(encoding="utf-8") == results.page(), "run: python docs/results.py"


def test_every_public_name_is_on_the_api_page():
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\.\. auto(?:class|function|module):: ganns\.(\w+)$", page, re.MULTILINE))
    assert shown == set(ganns.__all__)


def test_public_surface():
    assert sorted(ganns.__all__) == [
        "ActivityPrior", "Calibration", "Classification", "Family", "Fleet", "GaNNClassifier", "GaNNRegressor",
        "Gaussian", "GaussianLayer", "GaussianMLP", "Laplace", "Member", "Predictive", "Recipe", "Regression", "Scores",
        "State", "StudentT", "Trace", "Training", "Typicality", "accumulate", "calibrate", "coefficient", "fit_fleet",
        "fit_priors", "inner_loss", "insert", "load", "metrics", "moments", "predict", "sample", "strip", "surprise",
        "total_loss", "trace",
    ]  # fmt: skip
    assert all(hasattr(ganns, name) for name in ganns.__all__)


@pytest.mark.filterwarnings("default")  # recipes run torch.compile and other people's models
@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{name}.md" for name in ("start", "recipes", "fleet", "tables"))]
)
def test_code_runs(page, monkeypatch, tmp_path):
    """Each page is one program; recipes find themselves in a group of one process, as torchrun would start it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name, value in {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert blocks, f"{page} has no block of Python"
    namespace = {}
    for block in blocks:
        lines_before = "\n" * text[: block.start(1)].count("\n")  # so that a traceback names the page's line
        exec(compile(lines_before + block[1], ROOT / page, "exec"), namespace)
