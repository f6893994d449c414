"""What compiler passes did to a module, from its texts behind each of them."""
