"""What an order costs. All amounts are whole cents."""

SHIPPING = 490
FREE_SHIPPING_FROM = 5000
QUANTITY_DISCOUNTS = {10: 5, 50: 12}
"""From so many pieces on: so many percent off."""


def quantity_discount(quantity: int) -> int:
    """Discount of a line with this many pieces, in percent."""
    percent = 0
    for pieces, earned in QUANTITY_DISCOUNTS.items():
        if quantity > pieces:
            percent = earned
    return percent


def line_total(unit_price: int, quantity: int) -> int:
    """Price of one line of the order, its discount taken off."""
    full = unit_price * quantity
    return full - full * quantity_discount(quantity) // 100


def order_total(lines: list[tuple[int, int]]) -> int:
    """Price of the whole order with shipping. Lines are pairs of unit price and quantity."""
    goods = sum(line_total(unit_price, quantity) for unit_price, quantity in lines)
    return goods if goods >= FREE_SHIPPING_FROM else goods + SHIPPING
