"""An exception of C++ that nobody catches ends the process as ever, and is recorded with its type and text; an abort() of the program's own is
just that, also while an exception is handled."""
from twin import *

bed = Bed()
program = bed.program("throws.cpp", "-std=c++20")
TOLD = {"plain": ("St13runtime_error", "two\nlines"), "base": ("N3far4away7FailureE", "told by a base that is not the first"),
        "thread": ("St11logic_error", "in a thread"), "rethrown": ("St16invalid_argument", "kept and thrown again"),
        "noexcept": ("St12out_of_range", "through noexcept"), "number": ("i", ""), "pointer": ("PKSt9exception", ""), "hidden": ("6Hidden", "")}
for way in (*TOLD, "nothing", "handler", "handled", "abort"):
    both = bed.twin(program, way)
    assert both.under.status in (-6, 134), (way, both.under)
    found = [(entry["type"], entry["text"]) for entry in both.recorded("native_exception")]
    assert found == ([TOLD[way]] if way in TOLD else []), (way, found)
assert "what():  told by a base that is not the first" in bed.twin(program, "base").under.stderr

# Nothing else of the program is worth a recording: then there is none.
assert bed.twin(program, "plain", "quiet").recordings() == []
