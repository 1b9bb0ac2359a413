"""Blocks of rows, and some of them."""

from vcnef.data.rows import row_blocks, spread


def test_blocks_hold_all_rows_in_their_order():
    assert [rows.tolist() for rows in row_blocks(5, 10, most_bytes=20)] == [[0, 1], [2, 3], [4]]
    assert [rows.tolist() for rows in row_blocks(3, 10, most_bytes=1)] == [[0], [1], [2]]
    assert [len(rows) for rows in row_blocks(5, 10, most=3)] == [3, 2]
    assert not list(row_blocks(0, 10))


def test_some_rows_are_spread_from_first_to_last():
    assert spread(10, 4).tolist() == [0, 3, 6, 9]
    assert spread(10, 1).tolist() == [0]
