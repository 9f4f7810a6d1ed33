"""The sample project of the demo: a small package whose tests find a real fault in it."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "README.md": """\
# parcels

Works out what parcels weigh and cost. Run the tests with `python -m unittest`.
""",
    "parcels/__init__.py": '"""What parcels weigh and cost."""\n',
    "parcels/weights.py": '''\
"""Weights of a delivery, in kilograms."""


def total(weights: list[float]) -> float:
    """The weight of all parcels together."""
    return sum(weights)


def mean(weights: list[float]) -> float:
    """The weight of a parcel on average; 0 for a delivery without parcels."""
    return sum(weights) / len(weights)


def heaviest(weights: list[float]) -> float:
    """The weight of the heaviest parcel; 0 for a delivery without parcels."""
    return max(weights, default=0.0)
''',
    "tests/__init__.py": "",
    "tests/test_weights.py": """\
import unittest

from parcels.weights import heaviest, mean, total


class Weights(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1.5, 2.5]), 4.0)

    def test_mean(self):
        self.assertEqual(mean([1.0, 3.0]), 2.0)

    def test_mean_of_an_empty_delivery(self):
        self.assertEqual(mean([]), 0.0)

    def test_heaviest(self):
        self.assertEqual(heaviest([1.0, 3.0, 2.0]), 3.0)


if __name__ == "__main__":
    unittest.main()
""",
}


def build(folder: Path) -> None:
    """Write the project, with its fault, into a folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
