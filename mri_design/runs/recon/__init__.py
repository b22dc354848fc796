"""`recon`: image and error bars of the lines measured."""
