"""How each MPI is started, and made to say which ways its messages take."""
