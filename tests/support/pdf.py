"""Small PDF files, written by hand."""

from __future__ import annotations

from collections.abc import Sequence

_ESCAPED = str.maketrans({"\\": r"\\", "(": r"\(", ")": r"\)"})


def pdf_of(texts: Sequence[str]) -> bytes:
    """A file with a page for each text; an empty text makes a page without any, as a scanner does."""
    count = len(texts)
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for at, text in enumerate(texts):
        lines = " ".join(f"({line.translate(_ESCAPED)}) Tj 0 -14 Td" for line in text.split("\n") if line)
        content = f"BT /F1 12 Tf 72 720 Td {lines} ET" if lines else "0 0 612 792 re f"
        resources = "<< /Font << /F1 3 0 R >> >>"
        page = f"/Parent 2 0 R /MediaBox [0 0 612 792] /Resources {resources} /Contents {5 + 2 * at} 0 R"
        objects += [f"<< /Type /Page {page} >>", f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"]
    out = bytearray(b"%PDF-1.4\n")
    places: list[int] = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode()
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)
