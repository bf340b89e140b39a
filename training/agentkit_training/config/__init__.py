"""What a run is asked for: YAML files read into the records that the code works with."""
