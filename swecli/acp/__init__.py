"""Front-end for editors that speak the Agent Client Protocol."""
