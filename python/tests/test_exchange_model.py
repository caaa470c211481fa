"""docs/distributed.md has the tables that bench/exchange_model.py prints."""
import importlib.util
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def the_model():
    spec = importlib.util.spec_from_file_location("exchange_model", ROOT / "bench/exchange_model.py")
    model = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(model)
    return model


def test_the_page_has_the_tables():
    model = the_model()
    page = (ROOT / "docs/distributed.md").read_text()
    for table in (model.table_of_exchanges(), model.table_of_times()):
        assert "\n".join(table) in page, "bench/exchange_model.py prints another table:\n" + "\n".join(table)


def test_one_exchange_a_row_where_it_is_asked_for():
    """Composed, but for those that the page names with the reason."""
    import trireme
    model = the_model()
    forms = {name: model.forms(trireme.operator(name)) for name in trireme.operators() if name not in
             ("rms_norm_rope", "rms_norm_rope_positions", "rope", "rope_interleaved", "sinkhorn")}
    assert {name for name, each in forms.items() if len(each[1]) > 1} == {"add_rms_norm_quant", "rms_norm_quant", "cross_entropy_smooth"}
    assert {name for name, each in forms.items() if len(each[3]) > 1} == {"softmax_sink", "poly_norm"}
