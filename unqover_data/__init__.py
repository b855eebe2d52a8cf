"""Word lists and templates of the probe sets, and the code that reads and checks them."""
