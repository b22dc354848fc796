"""What measured lines say of a reconstruction while they are held back: its model, its bias, its error."""
