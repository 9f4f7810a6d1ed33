import unittest
from decimal import Decimal

import amounts
import invoice


class Amounts(unittest.TestCase):
    def test_points_and_commas(self) -> None:
        self.assertEqual(amounts.parse("1,250.50"), Decimal("1250.50"))
        self.assertEqual(amounts.parse("1.250,50"), Decimal("1250.50"))

    def test_an_amount_without_cents(self) -> None:
        self.assertEqual(amounts.parse("1'250"), Decimal("1250"))
        self.assertEqual(amounts.parse("-7"), Decimal("-7"))

    def test_a_separator_of_thousands_alone(self) -> None:
        self.assertEqual(amounts.parse("12,000"), Decimal("12000"))


class Invoices(unittest.TestCase):
    def test_a_total(self) -> None:
        self.assertEqual(invoice.total("Saw: 80.00\nDrills: 1,120.50\nThank you\n"), Decimal("1200.50"))
