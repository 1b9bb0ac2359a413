"""A trained model that speaks physical units: `Surrogate`, what it is asked, and the folder it is kept in."""

from vcnef.surrogate.surrogate import Surrogate

__all__ = ["Surrogate"]
