"""`compare`: strategies against each other on held-out scans."""
