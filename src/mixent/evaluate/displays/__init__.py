"""Pictures of methods, decisions and models; `mixent.displays` lists them."""
