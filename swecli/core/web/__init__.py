"""Reading the web: which addresses may be asked, one page at a time, as text."""
