"""The documentation site: pages from `docs/`, pages made from the code and its data, pictures, and what checks them."""
