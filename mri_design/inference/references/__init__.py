"""Dense references that fast engines are held against."""
