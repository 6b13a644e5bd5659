"""Tables, of csv to Arrow: their columns, their cells, and which of them is what."""
