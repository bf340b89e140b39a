"""The checks of the doctor, one idea a file; ``agentkit.evaluation.doctor.checkup`` lists them."""
