"""The receipt as the customer sees it."""

from basket.pricing import line_total, order_total, quantity_discount


def amount(cents: int) -> str:
    """An amount in cents as text: 490 is "4.90"."""
    return f"{cents // 100}.{cents % 100:02}"


def receipt(lines: list[tuple[str, int, int]]) -> str:
    """One row for each line (name, unit price, quantity), then the total."""
    rows: list[str] = []
    for name, unit_price, quantity in lines:
        discount = quantity_discount(quantity)
        note = f" (-{discount} %)" if discount else ""
        rows.append(f"{quantity} x {name}{note}: {amount(line_total(unit_price, quantity))}")
    total = order_total([(unit_price, quantity) for _, unit_price, quantity in lines])
    return "\n".join([*rows, f"Total with shipping: {amount(total)}"])
