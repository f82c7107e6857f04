"""Pictures of the studies."""
