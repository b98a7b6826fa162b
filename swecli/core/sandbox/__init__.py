"""Running commands so that they can change only the workspace and reach no network."""
