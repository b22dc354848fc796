"""The rules that choose lines; none of them imports another."""
