"""Networks from cells and macro skeletons: ``cells`` runs one cell, the other files stack them as a benchmark does."""
