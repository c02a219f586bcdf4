"""Matrix products, factorizations, linear systems and spectra."""
