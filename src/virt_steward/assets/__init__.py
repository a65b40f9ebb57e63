"""The assets that are shipped: data alone, one folder per asset. How they are read and used is in `catalog`."""
