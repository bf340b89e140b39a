"""A stateless simulator, as upstream's mathematics is."""

from decimal import Decimal


class Counter:
    """Counts."""

    def divide(self, a: float, b: float):
        """Divide; by zero it raises."""
        return {"result": a / b}

    def exact(self, number: str):
        """A value that JSON can not hold."""
        return {"result": Decimal(number)}

    def power(self, base: float, exponent: float):
        """A number to a power."""
        return {"result": base**exponent}
